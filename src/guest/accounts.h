// SPDX-License-Identifier: Apache-2.0
// Accounts: users and groups as /etc/passwd and /etc/group say, by a bounded parser of our own: the
// agent is static, so glibc's getpwnam (which loads NSS plug-ins) is out, and the files belong to
// whoever is root inside. Files beyond 1 MiB, and lines that are malformed, count as absent.
//
// A snapshot: load it for each operation, the files change.
#ifndef SOMA_GUEST_ACCOUNTS_H_
#define SOMA_GUEST_ACCOUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace soma::guest {

struct User {
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string home = "/";
  std::string shell;
  std::vector<std::uint32_t> groups;  // supplementary, at most kGroupsMax
};

class Accounts {
 public:
  static constexpr std::size_t kFileMax = std::size_t{1} << 20;
  static constexpr std::size_t kGroupsMax = 256;

  // Reads both files; a missing one is an empty one.
  static Accounts Load();
  static Accounts Parse(std::string_view passwd, std::string_view group);

  // kUnauthenticated "invalid username: 'x'" if there is none (E2B's words).
  Result<User> Find(std::string_view name) const;
  bool Has(std::string_view name) const;
  // The name, or the number in text.
  std::string UserName(std::uint32_t uid) const;
  std::string GroupName(std::uint32_t gid) const;

 private:
  std::vector<User> users_;
  std::map<std::uint32_t, std::string> user_names_;
  std::map<std::uint32_t, std::string> group_names_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_ACCOUNTS_H_
