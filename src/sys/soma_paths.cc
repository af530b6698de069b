// SPDX-License-Identifier: Apache-2.0
#include "sys/soma_paths.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::sys {

namespace {

std::string Variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::string> Absolute(const char* name, std::string path) {
  if (path.starts_with('/')) return path;
  return Fail(Errc::kFailedPrecondition, StrCat(name, " is not an absolute path: ", path));
}

}  // namespace

Result<std::string> StateDirectory() {
  if (std::string given = Variable("SOMA_STATE_DIR"); !given.empty()) {
    return Absolute("SOMA_STATE_DIR", std::move(given));
  }
  if (::geteuid() == 0) return "/var/lib/soma";
  // The XDG specification has relative paths ignored.
  if (const std::string xdg = Variable("XDG_STATE_HOME"); xdg.starts_with('/'))
    return xdg + "/soma";
  const std::string home = Variable("HOME");
  if (home.starts_with('/')) return home + "/.local/state/soma";
  return Fail(Errc::kFailedPrecondition,
              "neither SOMA_STATE_DIR nor HOME says where to keep state");
}

Result<std::string> RuntimeDirectory() {
  if (std::string given = Variable("SOMA_RUNTIME_DIR"); !given.empty()) {
    return Absolute("SOMA_RUNTIME_DIR", std::move(given));
  }
  if (::geteuid() == 0) return "/run/soma";
  if (const std::string xdg = Variable("XDG_RUNTIME_DIR"); xdg.starts_with('/'))
    return xdg + "/soma";
  SOMA_ASSIGN(const std::string state, StateDirectory());
  return state + "/run";
}

std::string RunGatePath(const std::string& runtime) { return runtime + "/run-gate.lock"; }

Result<std::string> ProgramDirectory() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size < 0) return std::unexpected(Error::FromErrno(errno, "readlink /proc/self/exe"));
  const std::string_view program(path, static_cast<std::size_t>(size));
  return std::string(program.substr(0, program.find_last_of('/')));
}

}  // namespace soma::sys
