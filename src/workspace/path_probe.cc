// SPDX-License-Identifier: Apache-2.0
#include "workspace/path_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/decide.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "policy/path_pattern.h"
#include "sys/directory.h"
#include "sys/fd.h"

namespace soma::workspace {

namespace {

using policy::PathFact;
using policy::PathKind;

constexpr std::size_t kPathMax = 4096;  // PATH_MAX, linux/limits.h
constexpr std::size_t kGlobDepthMax = 64;

PathKind KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return PathKind::kDirectory;
  if (S_ISREG(mode)) return PathKind::kFile;
  return PathKind::kOther;
}

std::optional<std::string> ReadLink(const std::string& path) {
  std::array<char, kPathMax> text{};
  const ssize_t size = readlink(path.c_str(), text.data(), text.size());
  if (size < 0 || static_cast<std::size_t>(size) >= text.size()) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

// The kernel's own name for what a descriptor refers to.
std::optional<std::string> NameOf(const Fd& fd) {
  auto name = ReadLink(StrCat("/proc/self/fd/", fd.get()));
  if (!name || !name->starts_with('/') || name->ends_with(" (deleted)")) return std::nullopt;
  return name;
}

// Absolute, and no component that stands for another place.
bool IsNormal(std::string_view path) {
  if (!path.starts_with('/')) return false;
  return path == "/" || std::ranges::none_of(Split(path.substr(1), '/'), [](std::string_view part) {
           return part.empty() || part == "." || part == "..";
         });
}

std::unexpected<Error> BadWorkspace(std::string_view path, std::string_view why) {
  return Fail(Errc::kInvalidArgument, StrCat("workspace ", EscapeForTerminal(path), " ", why));
}

bool HasControlCharacter(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Places that belong to the system or to everybody; the workspace may lie below some of them.
constexpr std::array<std::string_view, 8> kNeverBelow = {"/bin",  "/boot", "/dev", "/etc",
                                                         "/proc", "/sbin", "/sys", "/usr"};
constexpr std::array<std::string_view, 10> kNeverItself = {
    "/home", "/lib", "/lib64", "/media", "/mnt", "/run", "/srv", "/tmp", "/var", "/var/tmp"};

Status CheckPlace(std::string_view shown, std::string_view real, std::string_view home) {
  if (real == "/")
    return BadWorkspace(shown, "is the root of the file system: name a project folder");
  for (const std::string_view place : kNeverBelow) {
    if (policy::IsWithin(real, place))
      return BadWorkspace(shown, StrCat("lies in ", place, ", which belongs to the system"));
  }
  if (std::ranges::find(kNeverItself, real) != kNeverItself.end()) {
    return BadWorkspace(shown, "is shared by everything on this machine: name a folder below it");
  }
  if (!home.empty() && policy::IsWithin(home, real)) {
    return BadWorkspace(shown, "is the home directory or holds it: name a project folder below it");
  }
  return {};
}

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};
using DirHandle = std::unique_ptr<DIR, DirCloser>;

struct Entry {
  std::string name;
  bool is_directory = false;
};

bool IsDirectory(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status{};
  return fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

// What can't be listed, but might be by the command: it runs with the same rights, and may change
// the mode of what is its own.
bool IsOnlyClosedToUs(const std::string& path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return false;
  return status.st_uid == geteuid() || access(path.c_str(), X_OK) == 0;
}

std::unexpected<Error> CantLookInto(const std::string& path) {
  return std::unexpected(Error::FromErrno(
      errno, StrCat("a rule with a glob has to look into ", EscapeForTerminal(path),
                    ": open it, or name a narrower tree")));
}

// Missing, or no directory, or nobody's who asks: nothing is in it.
Result<std::vector<Entry>> ListDirectory(const std::string& path) {
  std::vector<Entry> out;
  const DirHandle dir(opendir(path.c_str()));
  if (!dir) {
    if (errno == EACCES && !IsOnlyClosedToUs(path)) return out;
    if (errno == ENOENT || errno == ENOTDIR) return out;
    return CantLookInto(path);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    out.push_back({std::string(name), IsDirectory(dirfd(dir.get()), *entry)});
  }
  if (errno != 0) return CantLookInto(path);
  return out;
}

// Expands the glob patterns of rules over what exists. Symbolic links are not followed: what
// they point to has its own name.
class GlobWalk {
 public:
  explicit GlobWalk(std::vector<std::string>& found) : found_(found) {}

  Status Expand(const policy::PathRule& rule) {
    const std::string& pattern = rule.pattern;
    rule_ = StrCat(policy::VerdictWord(rule.verdict), " \"", EscapeForTerminal(pattern), "\" (",
                   rule.origin.ToText(), ")");
    const std::size_t star = pattern.find('*');
    const std::string base = pattern.substr(0, std::max<std::size_t>(pattern.rfind('/', star), 1));
    return Walk(base, pattern, 0);
  }

 private:
  Status Walk(const std::string& directory, const std::string& pattern, std::size_t depth) {
    if (depth > kGlobDepthMax) {
      return Fail(Errc::kOutOfRange,
                  StrCat(rule_, " would have to look deeper than ", kGlobDepthMax,
                         " folders: name a smaller tree than ", EscapeForTerminal(directory)));
    }
    SOMA_ASSIGN(const std::vector<Entry> entries, ListDirectory(directory));
    for (const Entry& entry : entries) {
      if (++seen_ > kGlobEntriesMax) {
        return Fail(Errc::kOutOfRange, StrCat(rule_, " would have to look at more than ",
                                              kGlobEntriesMax, " files: name a smaller tree"));
      }
      const std::string path = StrCat(directory == "/" ? "" : directory, "/", entry.name);
      // A match covers everything below, so that the walk ends there.
      if (policy::MatchPrefix(pattern, path)) {
        found_.push_back(path);
      } else if (entry.is_directory) {
        SOMA_TRY(Walk(path, pattern, depth + 1));
      }
    }
    return {};
  }

  std::vector<std::string>& found_;
  std::string rule_;  // the one at hand, in words
  std::size_t seen_ = 0;
};

}  // namespace

PathFact LookAt(const std::string& path) {
  PathFact fact;
  fact.path = path;
  // Most paths hold no symbolic link; then nothing has to be asked a second time. Inside a sandbox
  // of ours there is no openat2.
  Fd fd(IsNormal(path) ? sys::OpenBeneath(AT_FDCWD, path.c_str(), O_PATH, 0, RESOLVE_NO_SYMLINKS)
                       : -ELOOP);
  const bool is_real = static_cast<bool>(fd);
  if (fd.get() == -ELOOP || fd.get() == -ENOSYS) fd = Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!fd || fstat(fd.get(), &status) != 0) return fact;
  const auto real = is_real ? std::optional(path) : NameOf(fd);
  if (!real) return fact;
  fact.real = *real;
  fact.kind = KindOf(status.st_mode);
  fact.owner_uid = status.st_uid;
  fact.owner_gid = status.st_gid;
  if (fact.real != path) fact.link_text = ReadLink(path).value_or("");
  return fact;
}

std::string RealHome(const std::string& home) {
  if (!home.starts_with('/')) return {};
  const PathFact fact = LookAt(home);
  if (fact.kind != PathKind::kDirectory || fact.real == "/") return {};
  return fact.real;
}

std::string RealPlace(const std::string& path) {
  // The deepest part that is there decides where the rest would be made.
  for (std::size_t end = path.size(); end != 0 && end != std::string::npos;
       end = path.rfind('/', end - 1)) {
    const PathFact fact = LookAt(path.substr(0, end));
    if (fact.kind != PathKind::kMissing) {
      return StrCat(fact.real == "/" ? "" : fact.real, path.substr(end));
    }
  }
  return path;
}

Result<std::string> CheckWorkspace(std::string_view path, std::string_view home) {
  if (HasControlCharacter(path)) return BadWorkspace(path, "has a control character in its name");
  if (!IsValidUtf8(path)) return BadWorkspace(path, "has a name that is not valid UTF-8");
  if (path.empty() || path.size() >= kPathMax) return BadWorkspace(path, "is no usable path");
  std::string trimmed(path);
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.pop_back();
  const Fd fd(open(trimmed.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd)
    return std::unexpected(Error::FromErrno(errno, StrCat("workspace ", EscapeForTerminal(path))));
  struct stat status{};
  if (fstat(fd.get(), &status) != 0)
    return std::unexpected(Error::FromErrno(errno, "workspace: fstat"));
  if (S_ISLNK(status.st_mode)) {
    const std::string target = ReadLink(trimmed).value_or("");
    return BadWorkspace(path, StrCat("is a symbolic link to ", EscapeForTerminal(target),
                                     ": name that folder itself"));
  }
  if (!S_ISDIR(status.st_mode)) return BadWorkspace(path, "is not a directory");
  const auto real = NameOf(fd);
  if (!real) return BadWorkspace(path, "has no name any more");
  if (HasControlCharacter(*real)) return BadWorkspace(*real, "has a control character in its path");
  if (!IsValidUtf8(*real)) return BadWorkspace(*real, "has a path that is not valid UTF-8");
  SOMA_TRY(CheckPlace(path, *real, home));
  return *real;
}

Result<policy::PathFacts> GatherPathFacts(const policy::Policy& policy) {
  policy::PathFacts facts;
  facts.workspace = LookAt(policy.workspace);
  if (policy.filesystem.front().fallback->value != policy::PathVerdict::kHide) {
    SOMA_ASSIGN(const std::vector<Entry> entries, ListDirectory("/"));
    for (const Entry& entry : entries) facts.root.push_back(LookAt(StrCat("/", entry.name)));
    std::ranges::sort(facts.root, {}, &PathFact::path);
  }
  std::vector<std::string> paths;
  GlobWalk walk(paths);
  for (const policy::FilesystemRules& layer : policy.filesystem) {
    for (const policy::PathRule& rule : layer.rules) {
      if (policy::HasGlob(rule.pattern)) {
        SOMA_TRY(walk.Expand(rule));
      } else {
        paths.push_back(rule.pattern);
      }
    }
  }
  std::ranges::sort(paths);
  const auto repeated = std::ranges::unique(paths);
  paths.erase(repeated.begin(), repeated.end());
  for (const std::string& path : paths) {
    PathFact fact = LookAt(path);
    if (fact.kind != PathKind::kMissing) facts.rules.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace soma::workspace
