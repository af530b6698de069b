// SPDX-License-Identifier: Apache-2.0
#include "launcher/paths.h"

#include <sys/stat.h>

#include <cerrno>
#include <expected>
#include <string>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/directory.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

Status MakeWithMode(const std::string& path, mode_t mode) {
  SOMA_TRY_WHILE(sys::MakeDirectories(path, mode), StrCat("making ", path));
  if (chmod(path.c_str(), mode) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chmod ", path)));
  }
  return {};
}

Status Clear(const std::string& path) {
  SOMA_ASSIGN(const sys::Dir directory, sys::Dir::OpenAbsolute(path));
  SOMA_ASSIGN(const auto names, directory.List());
  for (const std::string& name : names) {
    SOMA_ASSIGN(const sys::RelPath relative, sys::RelPath::Parse(name));
    SOMA_TRY(directory.RemoveTree(relative));
  }
  return {};
}

}  // namespace

Status PreparePaths(const Paths& paths) {
  constexpr mode_t kOwnOnly = 0700;
  // The server's user must reach the sockets, which have their own owner and mode; it may not list.
  constexpr mode_t kPassThrough = 0711;
  SOMA_TRY(MakeWithMode(paths.state, kOwnOnly));
  for (const std::string& path :
       {paths.Templates(), paths.Blanks(), paths.Uppers(), paths.Trees(), paths.Mounts()}) {
    SOMA_TRY(MakeWithMode(path, kOwnOnly));
  }
  SOMA_TRY(MakeWithMode(paths.runtime, kPassThrough));
  SOMA_TRY(MakeWithMode(paths.Records(), kOwnOnly));
  SOMA_TRY(MakeWithMode(paths.Monitors(), kPassThrough));
  return Clear(paths.Uppers());
}

}  // namespace soma::launcher
