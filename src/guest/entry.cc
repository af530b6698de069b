// SPDX-License-Identifier: Apache-2.0
#include "guest/entry.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/accounts.h"
#include "guest/paths.h"
#include "sys/fd.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::guest {
namespace {

wire::EntryType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return wire::EntryType::kFile;
  if (S_ISDIR(mode)) return wire::EntryType::kDirectory;
  return wire::EntryType::kOther;
}

// The names of the metadata attributes in a list that listxattr(2) gave.
std::vector<std::string> MetadataNames(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view name : Split(list, '\0')) {
    if (!name.starts_with(kMetadataPrefix) || names.size() >= wire::kMetadataCountMax) continue;
    names.emplace_back(name);
  }
  return names;
}

// What can't be read, or is beyond the wire's limits, is left out.
std::vector<wire::KeyValue> ReadMetadata(const std::string& path) {
  std::array<char, XATTR_LIST_MAX> list;  // the kernel's own bound, linux/limits.h
  const ssize_t size = ::listxattr(path.c_str(), list.data(), list.size());
  std::vector<wire::KeyValue> metadata;
  if (size <= 0) return metadata;
  for (const std::string& name : MetadataNames({list.data(), static_cast<std::size_t>(size)})) {
    std::string value(wire::kMetadataMax, '\0');
    const ssize_t got = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (got < 0) continue;
    value.resize(static_cast<std::size_t>(got));
    metadata.push_back({.key = name.substr(kMetadataPrefix.size()), .value = std::move(value)});
  }
  return metadata;
}

// Fills in the target's properties; a dangling link keeps type kUnspecified and points to itself.
void FollowLink(const std::string& path, struct stat& status, wire::EntryInfo& info) {
  info.is_symlink = true;
  info.symlink_target = path;
  std::array<char, PATH_MAX> resolved;
  struct stat target{};
  if (::realpath(path.c_str(), resolved.data()) == nullptr ||
      ::stat(resolved.data(), &target) != 0) {
    info.mode = status.st_mode & ~static_cast<mode_t>(S_IFMT);
    return;
  }
  info.symlink_target = resolved.data();
  status = target;
  info.type = TypeOf(target.st_mode);
  info.mode = target.st_mode;
}

}  // namespace

Result<wire::EntryInfo> DescribeEntry(const Accounts& accounts, const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Fail(Errc::kNotFound, StrCat("path not found: ", path));
    }
    return std::unexpected(Error::FromErrno(errno, path));
  }
  wire::EntryInfo info{.name = NameOf(path), .path = path};
  if (S_ISLNK(status.st_mode)) {
    FollowLink(path, status, info);
  } else {
    info.type = TypeOf(status.st_mode);
    info.mode = status.st_mode;
  }
  info.size = static_cast<std::uint64_t>(status.st_size);
  info.owner = accounts.UserName(status.st_uid);
  info.group = accounts.GroupName(status.st_gid);
  info.modified_ns =
      static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  info.metadata = ReadMetadata(path);
  return info;
}

Status ReplaceMetadata(const Fd& file, const std::vector<wire::KeyValue>& metadata) {
  std::array<char, XATTR_LIST_MAX> list;
  const ssize_t size = ::flistxattr(file.get(), list.data(), list.size());
  if (size > 0) {
    for (const std::string& name : MetadataNames({list.data(), static_cast<std::size_t>(size)})) {
      if (::fremovexattr(file.get(), name.c_str()) != 0 && errno != ENODATA) {
        return std::unexpected(Error::FromErrno(errno, "removing metadata"));
      }
    }
  }
  for (const wire::KeyValue& item : metadata) {
    const std::string name = StrCat(kMetadataPrefix, item.key);
    if (::fsetxattr(file.get(), name.c_str(), item.value.data(), item.value.size(), 0) != 0) {
      return std::unexpected(Error::FromErrno(errno, StrCat("setting metadata '", item.key, "'")));
    }
  }
  return {};
}

}  // namespace soma::guest
