// SPDX-License-Identifier: Apache-2.0
// Manifest: what a template is, kept as manifest.json beside its root.erofs.
//
// A plain value. The text form is read by the server and by people; unknown members are ignored, so
// that a newer builder's template stays usable.
#ifndef SOMA_IMAGE_MANIFEST_H_
#define SOMA_IMAGE_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace soma::image {

struct Manifest {
  std::string id;  // NAME-<20 hex digits of erofs_sha256>: one path component, and a template id of
                   // the control messages
  std::string name;  // "base"
  std::string
      key;  // SHA-256 of everything that the build depended on: equal keys make a build unnecessary
  std::string erofs_sha256;
  std::uint64_t erofs_bytes = 0;
  std::string default_user = "user";
  std::string work_directory = "/home/user";
  std::int64_t created_seconds = 0;   // since 1970, UTC
  std::vector<std::string> packages;  // name=version

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// A template's name: [a-z0-9] first, then [a-z0-9._-], at most 32 characters, so that the id fits
// in 64.
bool IsTemplateName(std::string_view text);

std::string MakeTemplateId(std::string_view name, std::string_view erofs_sha256);

std::string WriteManifest(const Manifest& manifest);
// kInvalidArgument for text that WriteManifest could not have written, apart from unknown members.
Result<Manifest> ReadManifest(std::string_view text);

}  // namespace soma::image

#endif  // SOMA_IMAGE_MANIFEST_H_
