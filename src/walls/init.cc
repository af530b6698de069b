// SPDX-License-Identifier: Apache-2.0
#include "walls/init.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "sys/fd.h"
#include "sys/process.h"
#include "walls/channel.h"
#include "walls/command.h"
#include "walls/descendants.h"
#include "walls/plan.h"
#include "walls/privileges.h"
#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

// The words that this program was started with. The kernel shows them to everybody in
// /proc/1/cmdline, and they are the host's.
char* command_line = nullptr;
std::size_t command_line_size = 0;

// glibc passes main's arguments to constructors too; there is no other way to the words' place.
[[gnu::constructor]] void RememberCommandLine(int count, char** words, char**) {
  if (count < 1) return;
  command_line = words[0];
  char* const last = words[count - 1];
  command_line_size = static_cast<std::size_t>(last - words[0]) + std::strlen(last);
}

void HideCommandLine() {
  constexpr std::string_view kName = "soma-init";
  if (command_line == nullptr) return;
  std::memset(command_line, 0, command_line_size);
  std::memcpy(command_line, kName.data(), std::min(command_line_size, kName.size()));
}

struct Command {
  pid_t pid = -1;
  StepFailure failure;
};

// The child runs in our memory until it executes, so what it wrote is simply there afterwards, and
// the pages of the launcher are not copied a second time. Volatile, because the compiler doesn't
// know of that.
Command StartByVfork(const Recipe& recipe, const Inside& inside) {
  Command command;
  volatile Step failed_step = Step::kNone;
  volatile int failed_errno = 0;
  // NOLINTNEXTLINE(bugprone-unsafe-functions): waiting for the exec is just what is wanted here.
  command.pid = ::vfork();
  if (command.pid == 0) {
    const StepFailure failure = Execute(recipe, inside.terminal_slave.get());
    failed_errno = failure.errno_value;
    failed_step = failure.step;
    ::_exit(127);
  }
  if (command.pid < 0) {
    command.failure = {.step = Step::kForkCommand, .errno_value = errno};
  } else if (failed_step != Step::kNone) {
    command.failure = {.step = failed_step, .errno_value = failed_errno};
  }
  return command;
}

[[noreturn]] void RunUnnamespacedCommand(const Recipe& recipe, Inside& inside, int result) {
  (void)sys::DieWithParent(SIGKILL);
  StepFailure failure = GiveUpPrivileges(recipe, inside.listener);
  if (failure.step == Step::kNone) {
    const int sent = SendStands(recipe, inside);
    if (sent != 0) failure = {.step = Step::kHandOut, .errno_value = sent};
  }
  inside.listener.Reset();
  if (failure.step == Step::kNone) failure = Execute(recipe, inside.terminal_slave.get());
  (void)!::write(result, &failure, sizeof failure);
  ::_exit(127);
}

Command StartByFork(const Recipe& recipe, Inside& inside) {
  Command command;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    command.failure = {.step = Step::kForkCommand, .errno_value = errno};
    return command;
  }
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const sys::CloneResult clone = sys::Clone(0);
  if (clone.pid == 0) RunUnnamespacedCommand(recipe, inside, write_end.get());
  write_end.Reset();
  command.pid = clone.pid;
  if (clone.pid < 0) {
    command.failure = {.step = Step::kForkCommand, .errno_value = clone.error};
    return command;
  }
  ::close(clone.pidfd);
  StepFailure failure;
  // Nothing to read: the exec has closed the pipe.
  if (::read(read_end.get(), &failure, sizeof failure) == sizeof failure) command.failure = failure;
  return command;
}

std::uint64_t Microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

Packet EndedPacket(int status) {
  rusage usage{};
  (void)::getrusage(RUSAGE_CHILDREN, &usage);
  return {.kind = PacketKind::kEnded,
          .value = status,
          .user_time_us = Microseconds(usage.ru_utime),
          .system_time_us = Microseconds(usage.ru_stime),
          .resident_bytes_max = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

// Without a pid namespace nobody ends the descendants for us.
void EndDescendants() {
  while (KillChildren(::getpid())) {
    int status = 0;
    // At least one was killed, so this returns; then take what else is there.
    (void)::waitpid(-1, &status, __WALL);
    while (::waitpid(-1, &status, WNOHANG | __WALL) > 0) {
    }
  }
}

class InitLoop {
 public:
  InitLoop(const Recipe& recipe, const Inside& inside, pid_t command)
      : channel_(recipe.channel),
        signals_(inside.signals.get()),
        command_(command),
        alone_(Has(recipe.plan->namespaces, Namespaces::kPid)) {}

  [[noreturn]] void Run() {
    for (;;) {
      pollfd fds[] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                      {.fd = channel_, .events = POLLIN, .revents = 0}};
      if (::poll(fds, 2, -1) < 0 && errno != EINTR) End(nullptr);
      if (fds[0].revents != 0) Reap();
      if (fds[1].revents != 0) Listen();
    }
  }

 private:
  [[noreturn]] void End(const Packet* report) {
    if (!alone_) EndDescendants();
    if (report != nullptr) (void)SendPacket(channel_, *report);
    ::_exit(0);  // as pid 1: the kernel kills and reaps everything else in the namespace
  }

  void Reap() {
    signalfd_siginfo ignored{};
    (void)!::read(signals_, &ignored, sizeof ignored);
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
      if (pid != command_) continue;
      const Packet report = EndedPacket(status);
      End(&report);
    }
  }

  void Listen() {
    Packet packet;
    if (!ReceivePacket(channel_, packet)) End(nullptr);  // the launcher is gone
    if (packet.kind != PacketKind::kSignal) return;
    (void)::kill(packet.group != 0 ? -command_ : command_, packet.value);
  }

  int channel_;
  int signals_;
  pid_t command_;
  bool alone_;
};

// Nothing of the task's stays open here: a pipe must see its end when the task is done with it.
void KeepOnly(int channel, int signals) {
  for (int number = 0; number < 3; ++number) ::close(number);
  const int low = channel < signals ? channel : signals;
  const int high = channel < signals ? signals : channel;
  for (int number = 3; number < low; ++number) ::close(number);
  for (int number = low + 1; number < high; ++number) ::close(number);
  (void)sys::CloseFrom(static_cast<unsigned>(high) + 1);
}

}  // namespace

int SendStands(const Recipe& recipe, const Inside& inside) noexcept {
  int descriptors[6];
  std::size_t count = 0;
  std::uint32_t handed = 0;
  if (inside.listener) {
    handed |= kHandedListener;
    descriptors[count++] = inside.listener.get();
  }
  if (inside.terminal_master) {
    handed |= kHandedTerminal;
    descriptors[count++] = inside.terminal_master.get();
  }
  if (inside.capture[0] >= 0) {
    handed |= kHandedCapture;
    for (const int socket : inside.capture) descriptors[count++] = socket;
  }
  return SendPacket(recipe.channel,
                    {.kind = PacketKind::kStands, .value = static_cast<std::int32_t>(handed)},
                    {descriptors, count});
}

void RunInit(const Recipe& recipe, Inside& inside) noexcept {
  HideCommandLine();
  const bool namespaced = Has(recipe.plan->namespaces, Namespaces::kPid);
  const Command command = namespaced ? StartByVfork(recipe, inside) : StartByFork(recipe, inside);
  if (command.failure.step != Step::kNone) FailStep(recipe.channel, command.failure);
  (void)SendPacket(recipe.channel, {.kind = PacketKind::kStarted});
  KeepOnly(recipe.channel, inside.signals.get());
  InitLoop(recipe, inside, command.pid).Run();
}

}  // namespace soma::walls
