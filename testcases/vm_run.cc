// SPDX-License-Identifier: Apache-2.0
// soma-vm-run: one command in a jailed virtual machine, straight from the launcher's plan and the
// wire, without launcher, monitor and server. For the tests of the level `emulated`, and for its
// boot figure.
//
//   soma-vm-run --kernel DIR --root FILE --scratch FILE [--memory MIB] [--ids N] [--explain] --
//   COMMAND…
//
// The scratch file is an ext4 image and is changed. Standard error says "ready after N ms,
// processor M ms" when the agent inside has answered. The exit code is the command's; 125 for a
// failure of ours. Needs root.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "launcher/vm/tsc.h"
#include "launcher/vm/vm_plan.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/plain_file.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "wire/link.h"
#include "wire/reply.h"
#include "wire/request.h"
#include "wire/session.h"

namespace soma {
namespace {

using Steady = std::chrono::steady_clock;

struct Options {
  launcher::VmPlanInput input;
  std::string root;
  std::string scratch;
  bool explain = false;
  std::vector<std::string> command;
};

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  // Ids that no account of Debian has.
  std::uint32_t first_id = 0x7ffe0000;
  std::uint64_t memory_mib = 256;
  int at = 1;
  const auto value = [&]() { return std::string(at + 1 < argc ? argv[++at] : ""); };
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    const std::string_view word = argv[at];
    if (word == "--kernel") {
      options.input.kernel_directory = value();
    } else if (word == "--root") {
      options.root = value();
    } else if (word == "--scratch") {
      options.scratch = value();
    } else if (word == "--memory") {
      memory_mib = ParseInt<std::uint64_t>(value()).value_or(0);
    } else if (word == "--ids") {
      first_id = ParseInt<std::uint32_t>(value()).value_or(0);
    } else if (word == "--explain") {
      options.explain = true;
    } else {
      return Fail(Errc::kInvalidArgument, StrCat("unknown option ", EscapeForTerminal(word)));
    }
  }
  for (++at; at < argc; ++at) options.command.emplace_back(argv[at]);
  options.input.host_root_id = first_id;
  options.input.host_qemu_id = first_id + 1;
  options.input.memory_bytes = memory_mib << 20;
  return options;
}

// When a machine was started, and how long ago that is: on the clock, and in processor time of its
// monitor, which is what a loaded machine leaves comparable.
struct Stopwatch {
  Steady::time_point begin;
  pid_t monitor = -1;

  std::int64_t ElapsedMs() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin).count();
  }
  std::int64_t ProcessorMs() const {
    clockid_t clock{};
    timespec used{};
    if (clock_getcpuclockid(monitor, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
    return (used.tv_sec * 1000) + (used.tv_nsec / 1'000'000);
  }
};

// The host's end of the wire: says hello, starts the command when the agent answers, passes its
// output on.
class Conversation {
 public:
  Conversation(Fd wire, std::vector<std::string> command, Stopwatch watch)
      : wire_(std::move(wire)),
        command_(std::move(command)),
        watch_(watch),
        session_(wire::Role::kHost) {}

  void Begin() {
    session_.Hello({.epoch = 1});
    Flush();
  }
  int fd() const { return wire_.get(); }
  bool has_output() { return !session_.Output().empty(); }

  // The command's exit code once it is known.
  Result<std::optional<int>> Advance() {
    Bytes chunk(wire::kInputMax);
    const ssize_t got = read(wire_.get(), chunk.data(), chunk.size());
    if (got == 0) return Fail(Errc::kUnavailable, "the machine closed the wire");
    if (got < 0 && errno != EAGAIN)
      return std::unexpected(Error::FromErrno(errno, "reading the wire"));
    if (got > 0) session_.OnBytes({chunk.data(), static_cast<std::size_t>(got)});
    while (auto event = session_.Next()) SOMA_TRY(Handle(*event));
    Flush();
    return exit_code_;
  }

  void Flush() {
    for (ByteView out = session_.Output(); !out.empty(); out = session_.Output()) {
      const ssize_t put = write(wire_.get(), out.data(), out.size());
      if (put <= 0) return;
      session_.Wrote(static_cast<std::size_t>(put));
    }
  }

 private:
  Status Handle(const wire::SessionEvent& event) {
    using Kind = wire::SessionEvent::Kind;
    if (event.kind == Kind::kBroken) return Fail(Errc::kDataLoss, event.reason);
    if (event.kind == Kind::kEstablished) return StartCommand();
    if (event.kind != Kind::kMessage || event.channel != channel_) return {};
    if (const auto* data = std::get_if<wire::Data>(&event.message)) {
      const int to = data->kind == wire::DataKind::kStderr ? STDERR_FILENO : STDOUT_FILENO;
      (void)!write(to, data->bytes.data(), data->bytes.size());
      session_.Consumed(event.channel, data->bytes.size());
    } else if (const auto* exit = std::get_if<wire::Exit>(&event.message)) {
      exit_code_ = exit->signal != 0 ? 128 + exit->signal : exit->code;
    } else if (const auto* failed = std::get_if<wire::Failed>(&event.message)) {
      return Fail(failed->code, failed->message);
    }
    return {};
  }

  Status StartCommand() {
    std::fprintf(stderr, "ready after %lld ms, processor %lld ms\n",
                 static_cast<long long>(watch_.ElapsedMs()),
                 static_cast<long long>(watch_.ProcessorMs()));
    SOMA_ASSIGN(channel_,
                session_.Request(wire::Start{.profile = "rooted", .arguments = command_}));
    return {};
  }

  Fd wire_;
  std::vector<std::string> command_;
  Stopwatch watch_;
  wire::Session session_;
  wire::ChannelId channel_ = wire::kControlChannel;
  std::optional<int> exit_code_;
};

struct Machine {
  walls::RunningTask task;
  Fd wire;
};

Result<Machine> StartMachine(const Options& options, const walls::WallPlan& plan) {
  SOMA_ASSIGN(const Fd root, sys::OpenFile(options.root, O_RDONLY));
  SOMA_ASSIGN(const Fd scratch, sys::OpenFile(options.scratch, O_RDWR));
  SOMA_ASSIGN(const Fd null, sys::OpenFile("/dev/null", O_RDWR));
  SOMA_ASSIGN(sys::SocketPair cable, sys::MakeSocketPair(SOCK_STREAM));
  SOMA_ASSIGN(auto task,
              walls::Launch(plan, {.descriptors = {root.get(), scratch.get(), cable.second.get(),
                                                   null.get(), STDERR_FILENO}}));
  if (fcntl(cable.first.get(), F_SETFL, O_NONBLOCK) != 0)
    return std::unexpected(Error::FromErrno(errno, "fcntl"));
  return Machine{.task = std::move(task), .wire = std::move(cable.first)};
}

Result<int> Converse(Machine machine, Conversation& conversation) {
  conversation.Begin();
  for (;;) {
    while (const auto event = machine.task.Advance()) {
      if (event->kind == walls::TaskEventKind::kEnded) {
        return Fail(Errc::kUnavailable, "the machine ended: " + event->end.Describe());
      }
    }
    const short events = conversation.has_output() ? POLLIN | POLLOUT : POLLIN;
    pollfd polls[] = {{.fd = machine.task.channel(), .events = POLLIN, .revents = 0},
                      {.fd = machine.task.pidfd(), .events = POLLIN, .revents = 0},
                      {.fd = conversation.fd(), .events = events, .revents = 0}};
    if (poll(polls, 3, -1) < 0 && errno != EINTR)
      return std::unexpected(Error::FromErrno(errno, "poll"));
    if (polls[2].revents == 0) continue;
    SOMA_ASSIGN(const std::optional<int> exit_code, conversation.Advance());
    if (exit_code) return *exit_code;
  }
}

Result<int> Run(int argc, char** argv) {
  SOMA_ASSIGN(Options options, ParseOptions(argc, argv));
  SOMA_ASSIGN(const Fd scratch, sys::OpenFile(options.scratch, O_RDONLY));
  SOMA_ASSIGN(options.input.scratch_bytes, sys::FileSize(scratch));
  SOMA_ASSIGN(options.input.tsc_khz, launcher::MeasureTscKhz());
  SOMA_ASSIGN(const walls::WallPlan plan, launcher::VmPlan(options.input));
  if (options.explain) {
    for (const std::string& line : walls::Describe(plan)) std::puts(line.c_str());
    return 0;
  }
  const Steady::time_point begin = Steady::now();
  SOMA_ASSIGN(Machine machine, StartMachine(options, plan));
  Conversation conversation(std::move(machine.wire), options.command,
                            {.begin = begin, .monitor = machine.task.pid()});
  return Converse(std::move(machine), conversation);
}

}  // namespace
}  // namespace soma

int main(int argc, char** argv) {
  const auto code = soma::Run(argc, argv);
  if (code) return *code;
  std::fprintf(stderr, "vm-run: %s\n", code.error().message().c_str());
  return 125;
}
