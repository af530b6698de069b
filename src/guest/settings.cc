// SPDX-License-Identifier: Apache-2.0
#include "guest/settings.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "guest/accounts.h"
#include "guest/paths.h"
#include "wire/request.h"

namespace soma::guest {

namespace {

// Who the agent is, where it isn't root: an account, or just the ids.
User Ourselves(const Accounts& accounts) {
  const std::string name = accounts.UserName(::geteuid());
  if (auto user = accounts.Find(name)) return *std::move(user);
  return {.name = name, .uid = ::geteuid(), .gid = ::getegid()};
}

}  // namespace

Result<User> Settings::ActingUser(const Accounts& accounts, std::string_view name) const {
  if (!name.empty()) return accounts.Find(name);
  if (::geteuid() != 0) return Ourselves(accounts);
  if (!default_user.empty()) return accounts.Find(default_user);
  return accounts.Find(accounts.Has("user") ? "user" : "root");
}

Result<std::string> Settings::Resolve(const User& user, std::string_view path) const {
  return ResolvePath(path, default_workdir, user.home);
}

void Settings::Apply(wire::Init init) {
  environment = std::move(init.environment);
  if (!init.default_user.empty()) default_user = std::move(init.default_user);
  default_workdir = std::move(init.default_workdir);
  // Both need privileges that a container's agent doesn't have; there the launcher has done it.
  if (!init.hostname.empty()) {
    static_cast<void>(::sethostname(init.hostname.data(), init.hostname.size()));
  }
  if (init.wall_time_us != 0) {
    constexpr std::uint64_t kMicroseconds = 1'000'000;
    const timespec now{.tv_sec = static_cast<time_t>(init.wall_time_us / kMicroseconds),
                       .tv_nsec = static_cast<long>(init.wall_time_us % kMicroseconds) * 1000};
    static_cast<void>(::clock_settime(CLOCK_REALTIME, &now));
  }
}

}  // namespace soma::guest
