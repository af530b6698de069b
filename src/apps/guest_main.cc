// SPDX-License-Identifier: Apache-2.0
// soma-guest [--wire=socket|virtio]: pid 1 inside a sandbox. The wire is descriptor 3.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "guest/agent.h"
#include "guest/egress_gate.h"
#include "sys/fd.h"
#include "sys/loopback.h"
#include "sys/real_clock.h"
#include "walls/capture.h"

namespace {

constexpr int kWireDescriptor = 3;

int Complain(std::string_view what) {
  const std::string line = soma::StrCat("soma-guest: ", what, "\n");
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  return 1;
}

// In a virtual machine the agent catches what wants out. Where the kernel can't (a module is
// missing) there is no way out at all, and Identity doesn't name the feature.
void ServeEgress(soma::guest::Agent& agent) {
  int sockets[4] = {-1, -1, -1, -1};
  int error = soma::sys::RaiseLoopback();
  if (error == 0) error = soma::walls::OpenCapture(sockets);
  soma::guest::CaptureListeners listeners{.tcp4 = soma::Fd(sockets[0]),
                                          .tcp6 = soma::Fd(sockets[1]),
                                          .dns_udp4 = soma::Fd(sockets[2]),
                                          .dns_tcp4 = soma::Fd(sockets[3])};
  if (error != 0) {
    Complain(soma::StrCat("no way out: ", soma::ErrnoName(error)));
    return;
  }
  if (const auto served = agent.ServeEgress(std::move(listeners)); !served) {
    Complain(served.error().message());
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto kind = soma::guest::WireKind::kSocket;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--wire=virtio") {
      kind = soma::guest::WireKind::kVirtio;
    } else if (argument != "--wire=socket") {
      return Complain("usage: soma-guest [--wire=socket|virtio], the wire as descriptor 3");
    }
  }
  // A task that becomes root inside must not read the link's secret out of this process.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::umask(0);
  // glibc raises both by itself after the first large buffer, and then gives nothing back.
  constexpr int kGiveBackBytes = 128 * 1024;
  ::mallopt(M_MMAP_THRESHOLD, kGiveBackBytes);
  ::mallopt(M_TRIM_THRESHOLD, kGiveBackBytes);
  soma::sys::RealClock clock;
  auto agent = soma::guest::Agent::Create(clock, soma::Fd(kWireDescriptor), kind);
  if (!agent) return Complain(agent.error().message());
  if (kind == soma::guest::WireKind::kVirtio) ServeEgress(**agent);
  const auto status = (*agent)->Run();
  return status ? 0 : Complain(status.error().message());
}
