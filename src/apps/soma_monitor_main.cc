// SPDX-License-Identifier: Apache-2.0
// soma-monitor: outer parent of one sandbox. Started by soma-launcher only.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "control/order.h"
#include "monitor/service.h"
#include "sys/fd.h"
#include "sys/real_clock.h"

namespace {

bool IsPacketSocket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

}  // namespace

int main(int argc, char** /*argv*/) {
  if (argc != 1 || !IsPacketSocket(soma::control::kMonitorLinkFd)) {
    std::fputs("soma-monitor is started by soma-launcher, not by people.\n", stderr);
    return 125;
  }
  // Its own session: a terminal's signals to the launcher are not for the sandboxes.
  (void)setsid();
  (void)chdir("/");
  prctl(PR_SET_NAME, "soma-monitor");
  soma::Fd link(soma::control::kMonitorLinkFd);
  // Inherited across exec on purpose; from here on it is ours alone.
  (void)fcntl(link.get(), F_SETFD, FD_CLOEXEC);
  soma::sys::RealClock clock;
  const soma::Status served = soma::monitor::Serve(std::move(link), clock);
  if (served) return 0;
  const std::string line =
      "soma-monitor: " + soma::EscapeForTerminal(served.error().message()) + "\n";
  std::fputs(line.c_str(), stderr);
  return 125;
}
