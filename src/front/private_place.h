// SPDX-License-Identifier: Apache-2.0
// PrivatePlace: the directory that stands for /tmp and the home directory of a run without
// namespaces (plan/second_path.h). Below the state directory, for the caller only, removed at the
// end of the run.
//
// A run that was killed leaves its directory; the next run of this kind removes it. Whose directory
// is in use is told by a lock that ends with its holder, never by its name or age.
#ifndef SOMA_FRONT_PRIVATE_PLACE_H_
#define SOMA_FRONT_PRIVATE_PLACE_H_

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::front {

class PrivatePlace {
 public:
  PrivatePlace(PrivatePlace&&) noexcept = default;
  PrivatePlace& operator=(PrivatePlace&&) noexcept = default;
  ~PrivatePlace();

  struct Owner {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
  };
  // Makes <state>/places/NAME with `tmp` and `home` in it, owned by `owner`, and removes what
  // killed runs have left. Only root can give it to another user.
  static Result<PrivatePlace> Create(const std::string& state, const std::string& name,
                                     const Owner& owner);

 private:
  PrivatePlace(std::string parent, std::string name, Fd lock)
      : parent_(std::move(parent)), name_(std::move(name)), lock_(std::move(lock)) {}

  std::string parent_;
  std::string name_;
  Fd lock_;  // invalid: moved from
};

// Where Create will make it.
std::string PrivatePlacePath(const std::string& state, const std::string& name);

}  // namespace soma::front

#endif  // SOMA_FRONT_PRIVATE_PLACE_H_
