// SPDX-License-Identifier: Apache-2.0
// Roots: the root file system of one sandbox: a template, read-only and id-mapped into the
// sandbox's range, under an upper of its own. Comes as a detached overlay mount; whoever holds the
// descriptor puts it in place in another mount namespace.
//
// Works in the worker's own mount namespace only (layers must be attached there for a moment,
// kernels before 6.15), so its mounts end with the worker. Root only.
#ifndef SOMA_LAUNCHER_ROOTS_H_
#define SOMA_LAUNCHER_ROOTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/messages.h"
#include "launcher/paths.h"
#include "sys/fd.h"

namespace soma::launcher {

class Roots {
 public:
  // Unshares the mount namespace of this process, mounts a tmpfs on paths.Mounts() and makes that
  // the working directory, where it stays.
  static Result<Roots> Create(const Paths& paths);

  // `id_namespace` is a user namespace (borrowed) whose ids 0 to 65535 are the sandbox's range,
  // beginning at `first_id`. `upper` is what Uppers::Take gave. kNotFound: no such template.
  Result<Fd> Make(const control::TemplateId& template_id, const Fd& upper, int id_namespace,
                  std::uint32_t first_id, std::string_view host_name);

 private:
  struct Mounted {
    std::string path;
    // Of the image: another one under the same name is mounted anew.
    std::uint64_t inode = 0;
    std::int64_t changed_ns = 0;
  };
  explicit Roots(Paths paths) : paths_(std::move(paths)) {}
  Result<std::string> Lower(const control::TemplateId& template_id);

  Paths paths_;
  std::map<control::TemplateId, Mounted> templates_;
  std::uint64_t counter_ = 0;
};

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_ROOTS_H_
