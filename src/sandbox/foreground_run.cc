// SPDX-License-Identifier: Apache-2.0
#include "sandbox/foreground_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "runtime/launched/control_connection.h"
#include "sandbox/foreground_attendant.h"
#include "sandbox/foreground_end.h"
#include "sandbox/foreground_message.h"
#include "sandbox/host_signals.h"
#include "sys/child_process.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/plain_file.h"
#include "sys/process.h"
#include "sys/pseudo_terminal.h"
#include "workspace/workspace_tar.h"

namespace soma::sandbox {
namespace {

// The caller's half: a poll loop that blocks in nothing but reading the workspace.
class CallerHalf {
 public:
  CallerHalf(const ForegroundOptions& options, HostSignals& signals, workspace::WorkspaceTar tar,
             Fd control, Fd copy)
      : options_(options),
        signals_(signals),
        tar_(std::move(tar)),
        control_(std::move(control)),
        copy_(std::move(copy)) {}

  Result<ForegroundEnd> Run(sys::Process attendant) {
    while (!over_ && !gone_) PollOnce();
    raw_.reset();
    SOMA_ASSIGN(const sys::ProcessEnd end, attendant.Wait());
    if (failure_) return std::unexpected(std::move(*failure_));
    if (!over_) {
      return Fail(Errc::kInternal, StrCat("the run's attendant ",
                                          end.exited ? "ended with " : "was killed by signal ",
                                          end.code, " before the command was over"));
    }
    if (!over_->ok) return Fail(over_->code, EscapeForTerminal(over_->message));
    ForegroundEnd told = std::move(over_->end);
    told.hidden = tar_.hidden();
    told.other = tar_.other();
    return told;
  }

 private:
  void PollOnce() {
    std::array<pollfd, 3> polls = {{{.fd = signals_.fd().get(), .events = POLLIN, .revents = 0},
                                    {.fd = control_.get(), .events = POLLIN, .revents = 0},
                                    {.fd = copy_.get(), .events = POLLOUT, .revents = 0}}};
    if (::poll(polls.data(), polls.size(), -1) < 0) return;
    if (polls[0].revents != 0) {
      for (const int signal : signals_.Take()) {
        Say(HostSignal{.number = static_cast<std::uint8_t>(signal)});
      }
    }
    if (polls[1].revents != 0) Hear();
    if (polls[2].revents != 0) CopyOnce();
  }

  // A full socket means that the attendant is stuck; it then hears nothing that would help.
  void Say(const ToAttendant& message, std::span<const int> descriptors = {}) {
    (void)sys::SendPacket(control_, Encode(message), descriptors);
  }

  void Hear() {
    Bytes buffer(kForegroundMessageMax);
    const auto packet = sys::ReceivePacket(control_, buffer, 0);
    if (!packet && packet.error().errno_value() == EAGAIN) return;
    auto message = packet ? DecodeToCaller(ByteView(buffer).first(packet->size))
                          : std::unexpected(packet.error());
    if (!message) {
      gone_ = true;
      control_.Reset();
      return;
    }
    if (std::holds_alternative<WantLauncher>(*message)) GiveLauncher();
    if (std::holds_alternative<TaskStarted>(*message)) GiveTerminal();
    if (auto* refused = std::get_if<RefusedConnect>(&*message)) options_.on_refused(*refused);
    if (auto* over = std::get_if<RunOver>(&*message)) over_ = std::move(*over);
  }

  void GiveLauncher() {
    const auto socket = runtime::ConnectControl(options_.launcher_socket);
    if (!socket) {
      Say(LauncherSocket{.failure = socket.error().message()});
      return;
    }
    const std::array descriptors = {socket->get()};
    Say(LauncherSocket{}, descriptors);
  }

  void GiveTerminal() {
    if (!raw_ && options_.terminal && ::isatty(STDIN_FILENO) == 1) {
      auto entered = sys::RawMode::Enter(STDIN_FILENO);
      if (entered) raw_.emplace(*std::move(entered));
    }
    Say(TerminalReady{});
  }

  void CopyOnce() {
    const Status copied = TryCopy();
    if (copied || copied.error().errno_value() == EAGAIN) return;
    // EPIPE: the attendant takes no more, and says why by its end.
    if (copied.error().errno_value() != EPIPE) failure_ = copied.error();
    copy_.Reset();
  }

  Status TryCopy() {
    if (piece_.empty()) {
      SOMA_ASSIGN(piece_, tar_.Next());
    }
    if (piece_.empty()) {
      const std::array<std::uint8_t, kCopyEndSize> end{};
      SOMA_TRY(sys::SendPacket(copy_, end));
      copy_.Reset();
      return {};
    }
    SOMA_TRY(sys::SendPacket(copy_, piece_));
    piece_.clear();
    return {};
  }

  const ForegroundOptions& options_;
  HostSignals& signals_;
  workspace::WorkspaceTar tar_;
  Fd control_;
  Fd copy_;      // none once the copy is over
  Bytes piece_;  // read and not sent yet
  std::optional<sys::RawMode> raw_;
  std::optional<Error> failure_;
  std::optional<RunOver> over_;
  bool gone_ = false;
};

}  // namespace

Result<ForegroundEnd> RunInForeground(const ForegroundOptions& options, HostSignals& signals,
                                      Clock& clock, Random& random) {
  SOMA_ASSIGN(auto tar, workspace::WorkspaceTar::Open(options.workspace, options.is_hidden,
                                                      {.bytes_max = options.copy_bytes_max}));
  SOMA_ASSIGN(auto control, sys::MakeSocketPair(SOCK_SEQPACKET | SOCK_NONBLOCK));
  SOMA_ASSIGN(auto copy, sys::MakeSocketPair(SOCK_SEQPACKET | SOCK_NONBLOCK));
  SOMA_ASSIGN(Fd journal, sys::OpenFile(options.journal_directory, O_PATH | O_DIRECTORY));
  const pid_t caller = ::getpid();
  SOMA_ASSIGN(auto attendant, sys::ForkProcess());
  if (!attendant) {
    Attend(options,
           {.control = std::move(control.second),
            .copy = std::move(copy.second),
            .journal = std::move(journal)},
           caller, clock, random);
  }
  // Its ends are its alone: when it is gone we see that.
  control.second.Reset();
  copy.second.Reset();
  return CallerHalf(options, signals, std::move(tar), std::move(control.first),
                    std::move(copy.first))
      .Run(*std::move(attendant));
}

}  // namespace soma::sandbox
