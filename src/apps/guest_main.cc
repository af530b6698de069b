// SPDX-License-Identifier: Apache-2.0
// soma-guest [--wire=socket|virtio]: pid 1 inside a sandbox. The wire is descriptor 3.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/text.h"
#include "guest/agent.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/real_clock.h"

namespace {

constexpr int kWireDescriptor = 3;

int Complain(std::string_view what) {
  const soma::Fd error(STDERR_FILENO);
  static_cast<void>(
      soma::sys::WriteAll(error, soma::AsBytes(soma::StrCat("soma-guest: ", what, "\n"))));
  return 1;
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
  soma::sys::RealClock clock;
  auto agent = soma::guest::Agent::Create(clock, soma::Fd(kWireDescriptor), kind);
  if (!agent) return Complain(agent.error().message());
  const auto status = (*agent)->Run();
  return status ? 0 : Complain(status.error().message());
}
