// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <expected>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::sandbox {

namespace {
constexpr std::array kSignals = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
                                 SIGUSR1, SIGUSR2, SIGWINCH, SIGPIPE};
}  // namespace

Result<HostSignals> HostSignals::Catch() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return std::unexpected(Error::FromErrno(errno, "blocking signals"));
  }
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return std::unexpected(Error::FromErrno(errno, "signalfd"));
  return HostSignals(std::move(fd));
}

std::vector<int> HostSignals::Take() {
  std::vector<int> taken;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGPIPE) taken.push_back(signal);
  }
  return taken;
}

}  // namespace soma::sandbox
