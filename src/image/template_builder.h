// SPDX-License-Identifier: Apache-2.0
// Building templates: a recipe's output becomes an immutable directory of the template store.
//
//   <templates>/<id>/root.erofs      the root file system: a disk of a virtual machine, a mount of
//   a container <templates>/<id>/manifest.json   see manifest.h <templates>/<id>/tree/ the same,
//   unpacked, for launchers that may not mount an image; only on request <templates>/<name> a
//   symlink to the newest <id> of that name
//
// Nothing half-made is ever visible: a build works in <templates>/.build, takes its id by
// rename(2), and only then moves the name. It may be killed at any moment; the next one removes
// what it left. One build at a time, by a lock in the directory.
//
// A recipe is trusted (it comes with Soma and runs as the caller). What it downloads is as trusted
// as Debian's and npm's own signatures make it.
#ifndef SOMA_IMAGE_TEMPLATE_BUILDER_H_
#define SOMA_IMAGE_TEMPLATE_BUILDER_H_

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "image/manifest.h"

namespace soma::image {

enum class WhenCurrent : bool { kReuse, kRebuild };
enum class Unpack : bool { kNo, kYes };

struct BuildOptions {
  std::string name;
  std::string templates;  // the store; made if it is missing
  std::string
      recipe;  // an executable with the verbs `key` and `build DIR`, see data/templates/base/recipe
  WhenCurrent when_current = WhenCurrent::kReuse;
  Unpack unpack = Unpack::kNo;
};

struct Built {
  Manifest manifest;
  bool from_cache =
      false;  // the newest template of this name has the recipe's key; nothing was built
};

// Blocks for minutes; the recipe reports its progress on standard error. kFailedPrecondition:
// another build runs.
Result<Built> BuildTemplate(const BuildOptions& options, Clock& clock);

// A template that another store has built, as the newest of its name: `directory` holds its
// root.erofs and manifest.json, and is untrusted until its digest proves it to be what the manifest
// says. With its unpacked tree when `unpack` says so; an ordinary user owns every file of that.
// kDataLoss when image and manifest don't belong together.
Result<Manifest> ImportTemplate(const std::string& templates, const std::string& directory,
                                Unpack unpack);

// Every template of the store, sorted by name, then newest first. A directory without a valid
// manifest is left out. An absent store is an empty one.
Result<std::vector<Manifest>> ListTemplates(const std::string& templates);

// The template that `name_or_id` means. kNotFound: none.
Result<Manifest> FindTemplate(const std::string& templates, const std::string& name_or_id);

}  // namespace soma::image

#endif  // SOMA_IMAGE_TEMPLATE_BUILDER_H_
