// SPDX-License-Identifier: Apache-2.0
#include "guest/task_landlock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/test_switch.h"
#include "guest/accounts.h"
#include "sys/landlock.h"
#include "sys/plain_file.h"

namespace soma::guest {
namespace {

constexpr std::uint64_t kEverything = sys::kLandlockReadExecute | sys::kLandlockWrite;
constexpr std::uint64_t kDevices =
    sys::kLandlockRead | sys::kLandlockWriteFile | sys::kLandlockIoctlDev;

// What isn't there needs no rule.
Status Allow(sys::LandlockRuleset& rules, const std::string& path, std::uint64_t rights) {
  const auto file = sys::OpenFile(path, O_PATH);
  if (!file) return {};
  return rules.AllowPath(file->get(), rights);
}

// For places that a task or an account may choose: a home of "/" (Debian's for some services), or a
// link to it, would allow everything.
Status AllowWork(sys::LandlockRuleset& rules, const std::string& path) {
  const auto file = sys::OpenFile(path, O_PATH);
  struct stat place{};
  struct stat root{};
  if (!file || ::fstat(file->get(), &place) != 0 || ::stat("/", &root) != 0) return {};
  if (place.st_dev == root.st_dev && place.st_ino == root.st_ino) return {};
  return rules.AllowPath(file->get(), kEverything);
}

}  // namespace

Result<std::optional<sys::LandlockRuleset>> StrictLandlock(const User& user,
                                                           const std::string& workdir) {
  if (sys::LandlockAbi() == 0 || WithoutWall("landlock")) return std::nullopt;
  SOMA_ASSIGN(sys::LandlockRuleset rules,
              sys::LandlockRuleset::Create(
                  {.fs = sys::kLandlockAllFs,
                   .scoped = sys::kLandlockScopeSignal | sys::kLandlockScopeAbstractUnix}));
  SOMA_TRY(Allow(rules, "/", sys::kLandlockReadExecute));
  SOMA_TRY(Allow(rules, "/dev", kDevices));
  SOMA_TRY(Allow(rules, "/proc", sys::kLandlockRead | sys::kLandlockWriteFile));
  for (const std::string& path : {std::string("/tmp"), std::string("/var/tmp"),
                                  std::string("/dev/shm"), user.home, workdir}) {
    if (!path.empty()) SOMA_TRY(AllowWork(rules, path));
  }
  return std::optional<sys::LandlockRuleset>(std::move(rules));
}

}  // namespace soma::guest
