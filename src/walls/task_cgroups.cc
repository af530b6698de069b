// SPDX-License-Identifier: Apache-2.0
#include "walls/task_cgroups.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::walls {

Status TaskCgroups::Prepare(const CgroupPlan& plan, const LaunchOptions& options) {
  (void)options;
  if (plan.mode == CgroupMode::kNone) return {};
  return Fail(Errc::kUnimplemented, "cgroups: not yet");
}

Status TaskCgroups::Attach(pid_t pid) {
  for (const Fd& directory : attach_) {
    const Fd file(::openat(directory.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
    const std::string text = StrCat(pid);
    if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
      return std::unexpected(Error::FromErrno(errno, "cgroup.procs"));
    }
  }
  return {};
}

void TaskCgroups::Remove() {
  for (const std::string& directory : directories_) ::rmdir(directory.c_str());
  directories_.clear();
}

}  // namespace soma::walls
