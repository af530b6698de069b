// SPDX-License-Identifier: Apache-2.0
#include "workspace/policy_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/load.h"
#include "sys/fd.h"

namespace soma::workspace {

namespace {

using policy::LayerKind;

// nullopt: there is no such file.
Result<std::optional<std::string>> ReadBounded(const std::string& path, bool follow) {
  const Fd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW)));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return std::unexpected(
        Error::FromErrno(errno, StrCat("policy file ", EscapeForTerminal(path))));
  }
  struct stat status{};
  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Fail(Errc::kInvalidArgument,
                StrCat("policy file ", EscapeForTerminal(path), " is not a regular file"));
  }
  // One byte more than allowed, so that the loader sees that it is too much.
  std::string text(policy::kPolicyFileBytesMax + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return std::unexpected(
          Error::FromErrno(errno, StrCat("policy file ", EscapeForTerminal(path))));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return std::optional(std::move(text));
}

class Reader {
 public:
  Status Add(LayerKind kind, const std::string& path, bool required = false) {
    const bool follow = kind != LayerKind::kProject;
    SOMA_ASSIGN(std::optional<std::string> text, ReadBounded(path, follow));
    if (!text && required) {
      return Fail(Errc::kNotFound,
                  StrCat("policy file ", EscapeForTerminal(path), " does not exist"));
    }
    if (text) sources_.push_back({kind, policy::FormatOfFile(path), path, *std::move(text)});
    return {};
  }

  std::vector<policy::Source> Take() { return std::move(sources_); }
  std::size_t size() const { return sources_.size(); }

 private:
  std::vector<policy::Source> sources_;
};

Status AddProject(Reader& reader, const std::string& workspace) {
  const std::size_t before = reader.size();
  for (const char* name : {"/.soma.toml", "/.soma/policy.toml", "/.soma/policy.json"}) {
    SOMA_TRY(reader.Add(LayerKind::kProject, workspace + name));
  }
  if (reader.size() > before + 1) {
    return Fail(
        Errc::kInvalidArgument,
        StrCat("workspace ", EscapeForTerminal(workspace),
               " has more than one of .soma.toml, .soma/policy.toml and .soma/policy.json"));
  }
  return {};
}

}  // namespace

Result<std::vector<policy::Source>> ReadPolicyFiles(const PolicyPlaces& places) {
  Reader reader;
  SOMA_TRY(reader.Add(LayerKind::kSystem, places.system));
  std::string config = places.config;
  if (config.empty() && !places.home.empty()) config = StrCat(places.home, "/.config");
  if (!config.empty()) {
    SOMA_TRY(reader.Add(LayerKind::kUser, StrCat(config, "/soma/policy.toml")));
  }
  SOMA_TRY(AddProject(reader, places.workspace));
  for (const std::string& path : places.named) {
    SOMA_TRY(reader.Add(LayerKind::kCommandLine, path, true));
  }
  return reader.Take();
}

}  // namespace soma::workspace
