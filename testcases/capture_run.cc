// SPDX-License-Identifier: Apache-2.0
// capture_run TOOLS POLICY.json RUN -- COMMAND…: runs a command in a network namespace of its own
// whose only way out is `soma-tools egress-broker`, with no other wall. For the egress tests: it
// shows that part alone, and what an attacker sees who has broken everything else (the command is
// root in the namespace's owner, so nothing but the absence of any other way holds).
//
// POLICY.json is a policy::Handover. Environment CAPTURE_KILL_BROKER=1 kills the broker before the
// command starts. Prints what failed and exits 125 when it can't set up.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/text.h"
#include "sys/loopback.h"
#include "sys/message_socket.h"
#include "walls/capture.h"

namespace {

[[noreturn]] void Die(const char* what, int code) {
  std::fprintf(stderr, "capture_run: %s: %s\n", what, ::strerror(code));
  ::_exit(125);
}

void WriteTo(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) Die(path, errno);
  ::close(fd);
}

void EnterNamespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) Die("unshare", errno);
  WriteTo("/proc/self/setgroups", "deny");
  WriteTo("/proc/self/uid_map", soma::StrCat("0 ", uid, " 1"));
  WriteTo("/proc/self/gid_map", soma::StrCat("0 ", gid, " 1"));
}

pid_t StartBroker(char** argv, int control) {
  const pid_t broker = ::fork();
  if (broker < 0) Die("fork", errno);
  if (broker > 0) return broker;
  const int policy = ::open(argv[2], O_RDONLY);  // NOLINT(android-cloexec-open): for the broker
  if (policy < 0) Die(argv[2], errno);
  (void)::fcntl(control, F_SETFD, 0);
  const std::string control_text = soma::StrCat(control);
  const std::string policy_text = soma::StrCat(policy);
  ::execl(argv[1], "soma-tools", "egress-broker", "--control", control_text.c_str(),
          "--policy-json", policy_text.c_str(), "--run", argv[3], nullptr);
  Die(argv[1], errno);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || std::string(argv[4]) != "--") Die("usage", EINVAL);
  auto pair = soma::sys::MakeSocketPair(SOCK_SEQPACKET);
  if (!pair) Die("socketpair", pair.error().errno_value());
  const pid_t broker = StartBroker(argv, pair->second.get());
  pair->second.Reset();
  EnterNamespaces();
  if (const int failed = soma::sys::RaiseLoopback(); failed != 0) Die("loopback", failed);
  int sockets[4];
  if (const int failed = soma::walls::OpenCapture(sockets); failed != 0) Die("capture", failed);
  const std::array<std::uint8_t, 1> hello = {'S'};
  if (!soma::sys::SendPacket(pair->first, hello, sockets)) Die("handing over", errno);
  for (const int socket : sockets) ::close(socket);
  std::array<std::uint8_t, 4> ready{};
  const auto answer = soma::sys::ReceivePacket(pair->first, ready, 0);
  if (!answer || answer->size != 1 || ready[0] != 'R') Die("the broker did not start", EPROTO);
  if (::getenv("CAPTURE_KILL_BROKER") != nullptr) {
    (void)::kill(broker, SIGKILL);
    (void)::waitpid(broker, nullptr, 0);
  }
  const pid_t command = ::fork();
  if (command == 0) {
    ::execvp(argv[5], argv + 5);
    Die(argv[5], errno);
  }
  int status = 0;
  (void)::waitpid(command, &status, 0);
  pair->first.Reset();
  (void)::waitpid(broker, nullptr, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
