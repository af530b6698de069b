// SPDX-License-Identifier: Apache-2.0
// Settings: what Init has set for all later requests, and who a request acts as.
#ifndef SOMA_GUEST_SETTINGS_H_
#define SOMA_GUEST_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guest/accounts.h"
#include "wire/request.h"

namespace soma::guest {

struct Settings {
  std::vector<wire::KeyValue> environment;
  std::string default_user;     // "" = `user` where that account exists, else root
  std::string default_workdir;  // "" = the acting user's home

  // The account called `name`, or the default user's for "". An agent that isn't root (tests) acts
  // as itself when nobody is named.
  Result<User> ActingUser(const Accounts& accounts, std::string_view name) const;
  // See guest/paths.h.
  Result<std::string> Resolve(const User& user, std::string_view path) const;

  // Takes over a message; sets host name and clock where the agent may.
  void Apply(wire::Init init);
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_SETTINGS_H_
