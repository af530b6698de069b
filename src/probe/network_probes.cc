// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/fd.h"
#include "sys/loopback.h"
#include "walls/capture.h"

namespace soma::probe {
namespace {

// An address of TEST-NET-2 (RFC 5737): nobody has it, and the capture uses another as its own, so
// only the capture can have answered.
Answer TryCapture() {
  std::string_view step;
  if (const int error = EnterNamespaces(CLONE_NEWNET, step); error != 0)
    return Missing(step, error);
  if (const int error = sys::RaiseLoopback(); error != 0) return Missing("raise lo", error);
  int sockets[4] = {-1, -1, -1, -1};
  if (const int error = walls::OpenCapture(sockets); error != 0)
    return Missing("set up the capture", error);
  sockaddr_in target{.sin_family = AF_INET, .sin_port = htons(80)};
  ::inet_pton(AF_INET, "198.51.100.7", &target.sin_addr);
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) {
    return Missing("connect", errno);
  }
  const Fd accepted(::accept4(sockets[0], nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted) return Missing("accept", errno);
  sockaddr_in seen{};
  socklen_t size = sizeof seen;
  if (::getsockname(accepted.get(), reinterpret_cast<sockaddr*>(&seen), &size) != 0) {
    return Missing("getsockname", errno);
  }
  if (seen.sin_addr.s_addr != target.sin_addr.s_addr || seen.sin_port != target.sin_port) {
    return Leaks("the connection arrived, but not its address");
  }
  return Proven("a connect to 198.51.100.7:80 arrived at our listener with its address");
}

}  // namespace

Row ProbeTransparentProxy() {
  return MakeRow(Feature::kTransparentProxy, Try(TryCapture),
                 "kernel modules nf_tables and nft_tproxy (`modprobe nft_tproxy` as root), and "
                 "user namespaces; without "
                 "them a run with network rules doesn't start");
}

}  // namespace soma::probe
