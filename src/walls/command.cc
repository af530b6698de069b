// SPDX-License-Identifier: Apache-2.0
#include "walls/command.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "sys/pseudo_terminal.h"
#include "walls/plan.h"
#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

int CloseOnExec(unsigned first, unsigned last) {
  if (first > last) return 0;
  return ::syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) == 0 ? 0 : errno;
}

// The numbers that the plan names stay open, every other one closes with the exec.
int ArrangeDescriptors(const Recipe& recipe, int terminal) {
  for (int number = 0; terminal >= 0 && number <= 2; ++number) {
    if (::dup2(terminal, number) < 0) return errno;
  }
  for (const Recipe::Pass& pass : recipe.passes) {
    // A standard stream that the launcher itself hasn't got stays closed.
    if (pass.from < 0) {
      ::close(pass.to);
    } else if (::dup2(pass.from, pass.to) < 0) {
      return errno;
    }
  }
  unsigned next = 3;
  for (const Recipe::Pass& pass : recipe.passes) {
    const auto kept = static_cast<unsigned>(pass.to);
    if (kept < next) continue;
    const int closed = kept > next ? CloseOnExec(next, kept - 1) : 0;
    if (closed != 0) return closed;
    next = kept + 1;
  }
  return CloseOnExec(next, ~0U);
}

// 0 or an errno, of the candidate that tells most: a found one that can't be executed beats an
// absent one.
int ExecuteCandidates(const Recipe& recipe) {
  const auto arguments = const_cast<char* const*>(recipe.arguments.data());
  const auto environment = const_cast<char* const*>(recipe.environment.data());
  if (recipe.execute_descriptor >= 0) {
    ::syscall(SYS_execveat, recipe.execute_descriptor, "", arguments, environment, AT_EMPTY_PATH);
    return errno;
  }
  int told = ENOENT;
  for (const std::string& path : recipe.candidates) {
    // A supervised execve of a path that isn't there would be asked about; PATH has ten of them.
    // One in a directory that is closed to us counts as absent, as for a shell.
    if (recipe.candidates.size() > 1 && ::access(path.c_str(), F_OK) != 0) continue;
    ::execve(path.c_str(), arguments, environment);
    if (errno != ENOENT && errno != ENOTDIR) told = errno;
    if (told != ENOENT && told != EACCES) break;
  }
  return told;
}

}  // namespace

StepFailure Execute(const Recipe& recipe, int terminal) noexcept {
  const WallPlan& plan = *recipe.plan;
  if (plan.terminal != TerminalKind::kKeep) (void)::setsid();
  if (terminal >= 0) {
    const int taken = sys::TakeControllingTerminal(terminal);
    if (taken != 0) return {.step = Step::kTerminal, .errno_value = taken};
  }
  const int arranged = ArrangeDescriptors(recipe, terminal);
  if (arranged != 0) return {.step = Step::kDescriptors, .errno_value = arranged};
  if (::chdir(plan.working_directory.c_str()) != 0) {
    return {.step = Step::kWorkingDirectory, .errno_value = errno};
  }
  if (recipe.stay != nullptr) recipe.stay->Release();
  ::umask(plan.umask);
  // A launcher that ignores SIGPIPE means itself; the command gets what a shell would give it.
  (void)::signal(SIGPIPE, SIG_DFL);
  (void)::signal(SIGXFSZ, SIG_DFL);
  (void)::sigprocmask(SIG_SETMASK, &recipe.signal_mask, nullptr);
  return {.step = Step::kExecute, .errno_value = ExecuteCandidates(recipe)};
}

}  // namespace soma::walls
