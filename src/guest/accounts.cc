// SPDX-License-Identifier: Apache-2.0
#include "guest/accounts.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/plain_file.h"

namespace soma::guest {
namespace {

// O_NONBLOCK: whoever is root inside may have put a FIFO there.
std::string ReadOrEmpty(const std::string& path) {
  const auto fd = sys::OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return {};
  auto text = sys::ReadAt(*fd, 0, Accounts::kFileMax + 1);
  if (!text || text->size() > Accounts::kFileMax) return {};
  return *std::move(text);
}

bool AppendUser(std::string_view line, std::vector<User>& users) {
  const auto parts = Split(line, ':');
  if (parts.size() != 7 || parts[0].empty()) return false;
  const auto uid = ParseInt<std::uint32_t>(parts[2]);
  const auto gid = ParseInt<std::uint32_t>(parts[3]);
  if (!uid || !gid) return false;
  User user{.name = std::string(parts[0]), .uid = *uid, .gid = *gid};
  if (parts[5].starts_with('/')) user.home = parts[5];
  user.shell = parts[6];
  users.push_back(std::move(user));
  return true;
}

}  // namespace

Accounts Accounts::Load() { return Parse(ReadOrEmpty("/etc/passwd"), ReadOrEmpty("/etc/group")); }

Accounts Accounts::Parse(std::string_view passwd, std::string_view group) {
  Accounts accounts;
  for (const std::string_view line : Split(passwd, '\n')) {
    if (!AppendUser(line, accounts.users_)) continue;
    const User& user = accounts.users_.back();
    accounts.user_names_.try_emplace(user.uid, user.name);
  }
  for (const std::string_view line : Split(group, '\n')) {
    const auto parts = Split(line, ':');
    if (parts.size() != 4 || parts[0].empty()) continue;
    const auto gid = ParseInt<std::uint32_t>(parts[2]);
    if (!gid) continue;
    accounts.group_names_.try_emplace(*gid, parts[0]);
    for (const std::string_view member : Split(parts[3], ',')) {
      const auto user = std::ranges::find(accounts.users_, member, &User::name);
      if (user == accounts.users_.end() || user->groups.size() >= kGroupsMax) continue;
      user->groups.push_back(*gid);
    }
  }
  return accounts;
}

bool Accounts::Has(std::string_view name) const {
  return std::ranges::find(users_, name, &User::name) != users_.end();
}

Result<User> Accounts::Find(std::string_view name) const {
  const auto user = std::ranges::find(users_, name, &User::name);
  if (user == users_.end()) {
    return Fail(Errc::kUnauthenticated, StrCat("invalid username: '", name, "'"));
  }
  return *user;
}

std::string Accounts::UserName(std::uint32_t uid) const {
  const auto it = user_names_.find(uid);
  return it == user_names_.end() ? StrCat(uid) : it->second;
}

std::string Accounts::GroupName(std::uint32_t gid) const {
  const auto it = group_names_.find(gid);
  return it == group_names_.end() ? StrCat(gid) : it->second;
}

}  // namespace soma::guest
