// SPDX-License-Identifier: Apache-2.0
// Spawn: starts one program as one user inside the walls of a task profile, and waits until it was
// executed or says why not.
//
// What the profiles mean here (the walls around the whole sandbox stand already; these are between
// tasks and the agent):
//   strict  no_new_privs, no capability, the strict seccomp filter
//   rooted  the user may become root inside (sudo): capabilities bounded to the list of design.md
//           §2. Where the agent holds CAP_SYS_ADMIN (a virtual machine) the rooted seccomp filter
//           is loaded as well; in a container the agent lives under it already and passes it on.
// An unknown profile is refused.
#ifndef SOMA_GUEST_SPAWN_H_
#define SOMA_GUEST_SPAWN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guest/accounts.h"
#include "sys/process.h"

namespace soma::guest {

enum class Profile : std::uint8_t { kStrict, kRooted };
std::optional<Profile> ParseProfile(std::string_view name);

struct SpawnOptions {
  Profile profile = Profile::kStrict;
  User user;
  std::vector<std::string> arguments;    // [0] is searched in the PATH of `environment`
  std::vector<std::string> environment;  // NAME=value; exactly this
  std::string workdir;                   // absolute; entered as the user
  // Borrowed. With `terminal` all three are the same slave of a pty, which becomes the controlling
  // terminal of the task's own session.
  int standard_input = -1;
  int standard_output = -1;
  int standard_error = -1;
  bool terminal = false;
};

// Blocks until the program runs, a few milliseconds at most. kNotFound, kPermissionDenied, ... with
// the errno of what failed; a missing workdir is kInvalidArgument "cwd 'x' does not exist".
Result<sys::Process> Spawn(const SpawnOptions& options);

}  // namespace soma::guest

#endif  // SOMA_GUEST_SPAWN_H_
