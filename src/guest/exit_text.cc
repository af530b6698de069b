// SPDX-License-Identifier: Apache-2.0
#include "guest/exit_text.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "wire/reply.h"

namespace soma::guest {
namespace {

// Go's words (syscall/zerrors_linux_amd64.go), because upstream's agent is written in Go.
std::string SignalText(int number) {
  constexpr std::pair<int, std::string_view> kTexts[] = {
      {SIGHUP, "hangup"},
      {SIGINT, "interrupt"},
      {SIGQUIT, "quit"},
      {SIGILL, "illegal instruction"},
      {SIGTRAP, "trace/breakpoint trap"},
      {SIGABRT, "aborted"},
      {SIGBUS, "bus error"},
      {SIGFPE, "floating point exception"},
      {SIGKILL, "killed"},
      {SIGUSR1, "user defined signal 1"},
      {SIGSEGV, "segmentation fault"},
      {SIGUSR2, "user defined signal 2"},
      {SIGPIPE, "broken pipe"},
      {SIGALRM, "alarm clock"},
      {SIGTERM, "terminated"},
      {SIGXCPU, "CPU time limit exceeded"},
      {SIGXFSZ, "file size limit exceeded"},
      {SIGSYS, "bad system call"},
  };
  for (const auto& [signal, text] : kTexts) {
    if (signal == number) return std::string(text);
  }
  return StrCat("signal ", number);
}

}  // namespace

wire::Exit ExitFromStatus(int wait_status) {
  wire::Exit exit;
  if (WIFEXITED(wait_status)) {
    exit.code = WEXITSTATUS(wait_status);
    exit.status = StrCat("exit status ", exit.code);
    return exit;
  }
  exit.code = -1;
  exit.signal = static_cast<std::uint8_t>(WTERMSIG(wait_status));
  exit.status = StrCat("signal: ", SignalText(exit.signal));
  if (WCOREDUMP(wait_status)) exit.status += " (core dumped)";
  return exit;
}

}  // namespace soma::guest
