// SPDX-License-Identifier: Apache-2.0
// How a container begins for an ordinary user: the same order to the same monitor, on a plain
// directory, with one id and rlimits.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/blueprint.h"
#include "launcher/container_plan.h"
#include "launcher/sandbox_names.h"
#include "launcher/worker.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

// The path without symlinks, which the walls want; templates/<name> may be one itself.
Result<std::string> FindTree(const std::string& path, std::string_view name) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return Fail(Errc::kNotFound, StrCat("there is no template ", name, " with an unpacked tree"));
  }
  std::string tree(resolved);
  free(resolved);
  return tree;
}

}  // namespace

Result<Blueprint> Worker::RootlessBlueprint(const control::Request& request, Fd guest_wire) {
  const std::string name(request.template_id.text());
  RootlessPlace place;
  place.uid = geteuid();
  place.gid = getegid();
  SOMA_ASSIGN(place.template_tree,
              FindTree(StrCat(options_.paths.Templates(), "/", name, "/tree"), name));
  const std::string home = options_.paths.Tree(request.sandbox);
  SOMA_TRY(sys::RemoveTreeAt(home));
  place.upper = home + "/upper";
  place.work = home + "/work";
  SOMA_TRY(sys::MakeDirectories(place.upper, 0755));
  SOMA_TRY(sys::MakeDirectories(place.work, 0755));
  SOMA_ASSIGN(const Fd directory, sys::OpenFile(home, O_PATH | O_DIRECTORY));
  SOMA_TRY(WriteSandboxNames(directory, geteuid(), getegid(), request.sandbox.text()));
  Blueprint blueprint;
  blueprint.plan = RootlessPlan(place, request.limits, request.sandbox.text());
  blueprint.limits = request.limits;
  // The order of container_plan.h; the first slot is not used by this plan.
  blueprint.AddBorrowed(null_);
  blueprint.AddBorrowed(guest_program_);
  blueprint.AddOwned(std::move(guest_wire));
  blueprint.AddBorrowed(null_);
  return blueprint;
}

// What sandboxes wrote that no longer are.
void Worker::SweepTrees() {
  const auto trees = sys::Dir::OpenAbsolute(options_.paths.Trees());
  if (!trees) return;
  const auto names = trees->List();
  if (!names) return;
  for (const std::string& name : *names) {
    const auto id = control::SandboxId::Create(name);
    if (!id || !sandboxes_.contains(*id))
      (void)sys::RemoveTreeAt(StrCat(options_.paths.Trees(), "/", name));
  }
}

}  // namespace soma::launcher
