// SPDX-License-Identifier: Apache-2.0
#include "guest/settings.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/accounts.h"
#include "guest/paths.h"
#include "sys/plain_file.h"
#include "wire/request.h"

namespace soma::guest {

namespace {

// Who the agent is, where it isn't root: an account, or just the ids.
User Ourselves(const Accounts& accounts) {
  const std::string name = accounts.UserName(::geteuid());
  if (auto user = accounts.Find(name)) return *std::move(user);
  return {.name = name, .uid = ::geteuid(), .gid = ::getegid()};
}

bool IsHostName(std::string_view name) {
  constexpr std::size_t kSizeMax = 64;  // HOST_NAME_MAX, linux/utsname.h
  return !name.empty() && name.size() <= kSizeMax && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.';
  });
}

// sudo looks its own host up, and warns and waits when nobody knows it.
void NameOurselves(std::string_view name) {
  const std::string path = "/etc/hosts";
  constexpr std::uint64_t kHostsMax = std::uint64_t{1} << 20;
  const std::string line = StrCat("127.0.1.1 ", name, "\n");
  const auto known = sys::ReadWholeFile(path, kHostsMax);
  if (known && known->find(line) != std::string::npos) return;
  const auto file = sys::OpenFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0644);
  if (file) static_cast<void>(sys::WriteAll(*file, AsBytes(line)));
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
  if (IsHostName(init.hostname) && ::sethostname(init.hostname.data(), init.hostname.size()) == 0) {
    NameOurselves(init.hostname);
  }
  if (init.wall_time_us != 0) {
    constexpr std::uint64_t kMicroseconds = 1'000'000;
    const timespec now{.tv_sec = static_cast<time_t>(init.wall_time_us / kMicroseconds),
                       .tv_nsec = static_cast<long>(init.wall_time_us % kMicroseconds) * 1000};
    static_cast<void>(::clock_settime(CLOCK_REALTIME, &now));
  }
}

}  // namespace soma::guest
