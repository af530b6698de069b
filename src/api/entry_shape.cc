// SPDX-License-Identifier: Apache-2.0
#include "api/entry_shape.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "parse/json.h"
#include "parse/timestamp.h"
#include "sandbox/guest_calls.h"

namespace soma::api {
namespace {

using parse::Json;

std::string_view TypeName(const wire::EntryInfo& entry) {
  switch (entry.type) {
    case wire::EntryType::kFile:
      return "FILE_TYPE_FILE";
    case wire::EntryType::kDirectory:
      return "FILE_TYPE_DIRECTORY";
    case wire::EntryType::kUnspecified:
    case wire::EntryType::kOther:
      return "FILE_TYPE_UNSPECIFIED";
  }
  return "FILE_TYPE_UNSPECIFIED";
}

// The prefix that Go's FileMode.String writes (io/fs, "FileMode").
std::string TypePrefix(const wire::EntryInfo& entry) {
  std::string prefix;
  switch (entry.mode & S_IFMT) {
    case S_IFDIR:
      prefix = "d";
      break;
    case S_IFLNK:
      prefix = "L";
      break;
    case S_IFIFO:
      prefix = "p";
      break;
    case S_IFSOCK:
      prefix = "S";
      break;
    case S_IFCHR:
      prefix = "Dc";
      break;
    case S_IFBLK:
      prefix = "D";
      break;
    default:
      break;
  }
  if ((entry.mode & S_ISUID) != 0) prefix += "u";
  if ((entry.mode & S_ISGID) != 0) prefix += "g";
  if ((entry.mode & S_ISVTX) != 0) prefix += "t";
  return prefix.empty() ? "-" : prefix;
}

Json MetadataShape(const wire::EntryInfo& entry) {
  Json object = Json::MakeObject();
  for (const auto& [key, value] : entry.metadata) object.Set(key, Json(value));
  return object;
}

}  // namespace

std::string PermissionText(const wire::EntryInfo& entry) {
  std::string text = TypePrefix(entry);
  static constexpr std::string_view kBits = "rwxrwxrwx";
  for (unsigned i = 0; i < 9; ++i) {
    text += (entry.mode & (0400U >> i)) != 0 ? kBits[i] : '-';
  }
  return text;
}

Json EntryShape(const wire::EntryInfo& entry) {
  Json object = Json::MakeObject();
  object.Set("name", Json(entry.name));
  object.Set("type", Json(TypeName(entry)));
  object.Set("path", Json(entry.path));
  // An int64 travels as a string in protobuf's JSON.
  object.Set("size", Json(StrCat(entry.size)));
  object.Set("mode", Json(std::int64_t{entry.mode & 0777U}));
  object.Set("permissions", Json(PermissionText(entry)));
  object.Set("owner", Json(entry.owner));
  object.Set("group", Json(entry.group));
  const WallTime modified(std::chrono::microseconds(entry.modified_ns / 1000));
  object.Set("modifiedTime", Json(parse::FormatTimestamp(modified)));
  if (entry.is_symlink) object.Set("symlinkTarget", Json(entry.symlink_target));
  if (!entry.metadata.empty()) object.Set("metadata", MetadataShape(entry));
  return object;
}

Json WrittenShape(const wire::EntryInfo& entry) {
  Json object = Json::MakeObject();
  object.Set("name", Json(entry.name));
  object.Set("path", Json(entry.path));
  object.Set("type", Json("file"));
  if (!entry.metadata.empty()) object.Set("metadata", MetadataShape(entry));
  return object;
}

}  // namespace soma::api
