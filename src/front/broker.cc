// SPDX-License-Identifier: Apache-2.0
#include "front/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "front/hand_over.h"
#include "policy/handover.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "walls/launch.h"

namespace soma::front {

namespace {

constexpr int kServeMilliseconds = 10'000;  // it loads in about ten; a busy machine may need longer
constexpr int kEndMilliseconds = 2'000;
constexpr std::uint8_t kReady = 'R';

// The numbers that the two descriptors have in the broker.
constexpr int kControlNumber = 3;
constexpr int kPolicyNumber = 4;

// What posix_spawn(3) is told: two descriptors, and a session of its own, so that a ^C at the
// terminal is the command's alone.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Give(const Fd& fd, int number) {
    posix_spawn_file_actions_adddup2(&actions_, fd.get(), number);
  }
  Result<pid_t> Spawn(const std::string& program, std::vector<std::string> words) const {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, program.c_str(), &actions_, &attributes_, argv.data(), environ);
    if (error == 0) return pid;
    return std::unexpected(
        Error::FromErrno(error, StrCat("starting the broker ", EscapeForTerminal(program))));
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

// A copy with a number that the ones above can't overwrite while they are put in place.
Result<Fd> MoveUp(const Fd& fd) {
  constexpr int kAbove = 16;
  Fd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, kAbove));
  if (!moved) return std::unexpected(Error::FromErrno(errno, "dup"));
  return moved;
}

}  // namespace

Result<Broker> Broker::Start(const policy::Handover& handover, const std::string& run_id) {
  SOMA_ASSIGN(const std::string text, policy::EncodeHandover(handover));
  SOMA_ASSIGN(const Fd policy, TextInMemory(text));
  SOMA_ASSIGN(sys::SocketPair pair, sys::MakeSocketPair(SOCK_SEQPACKET));
  SOMA_ASSIGN(const Fd control, MoveUp(pair.second));
  SOMA_ASSIGN(const Fd policy_above, MoveUp(policy));
  SOMA_ASSIGN(const std::string program, ToolsProgram());
  SpawnPlan plan;
  plan.Give(control, kControlNumber);
  plan.Give(policy_above, kPolicyNumber);
  SOMA_ASSIGN(const pid_t pid, plan.Spawn(program, {"soma-tools", "egress-broker", "--control",
                                                    StrCat(kControlNumber), "--policy-json",
                                                    StrCat(kPolicyNumber), "--run", run_id}));
  SOMA_ASSIGN(sys::Process process, sys::Process::Open(pid));
  return Broker(std::move(pair.first), std::move(process));
}

Status Broker::Serve(walls::CaptureSockets sockets) {
  const std::array<int, 4> descriptors = {sockets.tcp4.get(), sockets.tcp6.get(),
                                          sockets.dns_udp4.get(), sockets.dns_tcp4.get()};
  const std::array<std::uint8_t, 1> hello = {kReady};
  SOMA_TRY_WHILE(sys::SendPacket(control_, hello, descriptors),
                 "handing the network to the broker");
  pollfd ready{control_.get(), POLLIN, 0};
  if (poll(&ready, 1, kServeMilliseconds) != 1) {
    return Fail(Errc::kDeadlineExceeded,
                "the broker does not answer: nothing gets out, so nothing starts; try again, or "
                "run without network rules (--allow-net and [network])");
  }
  std::array<std::uint8_t, 16> answer{};
  SOMA_ASSIGN(const sys::ReceivedPacket received, sys::ReceivePacket(control_, answer, 0));
  if (received.size != 1 || answer[0] != kReady) {
    return Fail(Errc::kUnavailable,
                "the broker could not start (it said why above): nothing gets out, so nothing "
                "starts");
  }
  return {};
}

Broker::~Broker() {
  if (process_.pid() < 0) return;  // moved from
  control_.Reset();
  pollfd ended{process_.pidfd().get(), POLLIN, 0};
  if (poll(&ended, 1, kEndMilliseconds) != 1) process_.Signal(SIGKILL);
  (void)process_.Wait();
}

}  // namespace soma::front
