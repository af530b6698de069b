// SPDX-License-Identifier: Apache-2.0
// soma-filter-run: runs one command under a seccomp program alone, without any other wall. For the
// security tests of the filters and for their bench.
//
//   soma-filter-run PROFILE [--notify] -- COMMAND…    run it; exit codes as container tools use
//   them soma-filter-run bench                             time loading, tree against linear
//
// --notify serves the listener with a judge that allows all but what lies below /refused, and
// prints each refusal as one line "denied: TRIED OBJECT" on stderr.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <ratio>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_switch.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "sys/real_clock.h"
#include "sys/seccomp.h"
#include "walls/denied.h"
#include "walls/judge.h"
#include "walls/seccomp_profile.h"
#include "walls/supervisor.h"

namespace soma::walls {
namespace {

#include "seccomp/strict_linear.inc"

constexpr int kFailed = 125;
constexpr int kNotFound = 127;

class RefusedFolder final : public Judge {
 public:
  Verdict Decide(const Request& request) override {
    if (!request.path.real.starts_with("/refused")) return Verdict::Allow();
    return Verdict::Deny(EACCES, "the folder /refused", "");
  }
};

// The filter needs no_new_privs for an ordinary user, as in `strict`.
[[noreturn]] void LoadAndExecute(sys::SeccompProgram program, int report, char** command) {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!WithoutWall("seccomp")) {
    if (report >= 0) {
      auto loaded = sys::LoadSeccompWithListener(program);
      const std::uint8_t byte = 0;
      const int descriptors[] = {loaded.listener.get()};
      if (loaded.error != 0 || sys::SendPacketRaw(report, {&byte, 1}, descriptors) != 0)
        ::_exit(kFailed);
    } else if (sys::LoadSeccomp(program) != 0) {
      ::_exit(kFailed);
    }
  }
  ::execvp(command[0], command);
  ::_exit(kNotFound);
}

int ExitCode(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) < 0) return kFailed;
  constexpr int kSignalBase = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

int RunNotified(sys::SeccompProgram program, char** command) {
  auto pair = sys::MakeSocketPair(SOCK_SEQPACKET);
  if (!pair) return kFailed;
  const sys::CloneResult child = sys::Clone(0);
  if (child.pid == 0) LoadAndExecute(program, pair->second.get(), command);
  const Fd pidfd(child.pidfd);
  pair->second.Reset();
  std::uint8_t byte[1];
  auto packet = sys::ReceivePacket(pair->first, byte, 1);
  if (!packet || packet->descriptors.empty()) return ExitCode(child.pid);
  RefusedFolder judge;
  sys::RealClock clock;
  Supervisor supervisor(std::move(packet->descriptors[0]), judge, clock);
  while (true) {
    // Before 6.12 the listener's end shows only when the last task was reaped, and that is our
    // part.
    pollfd polls[] = {{.fd = supervisor.listener().get(), .events = POLLIN, .revents = 0},
                      {.fd = pidfd.get(), .events = POLLIN, .revents = 0}};
    ::poll(polls, 2, -1);
    if ((polls[0].revents & POLLIN) != 0) {
      if (!supervisor.ServeOne()) break;
    } else if (polls[0].revents != 0 || polls[1].revents != 0) {
      break;
    }
  }
  for (const Denied& event : supervisor.denied().Drain()) {
    std::fprintf(stderr, "denied: %s %s\n", event.tried.c_str(), event.object.c_str());
  }
  return ExitCode(child.pid);
}

double MicrosecondsToLoad(sys::SeccompProgram program) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return -1;
  const Fd reader(pipe[0]);
  const Fd writer(pipe[1]);
  const sys::CloneResult child = sys::Clone(0);
  if (child.pid == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const auto start = std::chrono::steady_clock::now();
    const int error = sys::LoadSeccomp(program);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    const double value = error == 0 ? took.count() : -1;
    ::_exit(::write(writer.get(), &value, sizeof value) == ssize_t{sizeof value} ? 0 : 1);
  }
  const Fd pidfd(child.pidfd);
  ExitCode(child.pid);
  double value = -1;
  return ::read(reader.get(), &value, sizeof value) == ssize_t{sizeof value} ? value : -1;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int Bench() {
  constexpr int kRounds = 201;
  const sys::SeccompProgram tree = ProgramFor(SeccompProfile::kStrict, SeccompNotify::kNone);
  const sys::SeccompProgram notify = ProgramFor(SeccompProfile::kStrict, SeccompNotify::kMutating);
  const sys::SeccompProgram linear{kStrictLinearInstructions};
  std::vector<double> times[3];
  for (int i = 0; i < kRounds; ++i) {
    times[0].push_back(MicrosecondsToLoad(tree));
    times[1].push_back(MicrosecondsToLoad(notify));
    times[2].push_back(MicrosecondsToLoad(linear));
  }
  const double peer = Median(times[2]);
  std::printf("| loading `strict`, median of %d | instructions | us | ratio |\n|---|---|---|---|\n",
              kRounds);
  std::printf("| linear | %zu | %.0f | 1.00 |\n", linear.instructions.size(), peer);
  std::printf("| tree | %zu | %.0f | %.2f |\n", tree.instructions.size(), Median(times[0]),
              Median(times[0]) / peer);
  std::printf("| tree with notify | %zu | %.0f | %.2f |\n", notify.instructions.size(),
              Median(times[1]), Median(times[1]) / peer);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "bench") return Bench();
  const auto profile = argc > 1 ? ParseSeccompProfile(argv[1]) : std::nullopt;
  const bool notify = argc > 2 && std::string_view(argv[2]) == "--notify";
  const int dashes = notify ? 3 : 2;
  if (!profile || argc <= dashes + 1 || std::string_view(argv[dashes]) != "--") {
    std::fputs("usage: soma-filter-run PROFILE [--notify] -- COMMAND…\n", stderr);
    return kFailed;
  }
  const sys::SeccompProgram program =
      ProgramFor(*profile, notify ? SeccompNotify::kMutating : SeccompNotify::kNone);
  char** command = argv + dashes + 1;
  if (notify) return RunNotified(program, command);
  LoadAndExecute(program, -1, command);
}

}  // namespace
}  // namespace soma::walls

int main(int argc, char** argv) { return soma::walls::Main(argc, argv); }
