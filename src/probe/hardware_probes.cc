// SPDX-License-Identifier: Apache-2.0
// What only the hardware, or a program beside us, can give.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text.h"
#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/fd.h"

namespace soma::probe {
namespace {

// A parameter of a kernel module: "Y", "1" or "" when there is none.
std::string ReadWord(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : 0;
  if (size <= 0) return {};
  return std::string(Trim(Split({text, static_cast<std::size_t>(size)}, '\n')[0]));
}

bool IsOn(const std::string& module_parameter) {
  const std::string word = ReadWord("/sys/module/" + module_parameter);
  return word == "Y" || word == "1";
}

Answer TryHost(const std::string& parameter, const char* device) {
  if (!IsOn(parameter)) return Missing(StrCat(parameter, " is not on"), 0);
  if (device == nullptr) return Proven(StrCat("the kernel module says ", parameter));
  const Fd file(::open(device, O_RDWR | O_CLOEXEC));
  if (!file) return Missing(StrCat("open ", device), errno);
  return Proven(StrCat("the kernel module says ", parameter, " and ", device, " opens"));
}

// The first `name` that can be executed in PATH.
std::string FindInPath(std::string_view name) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder :
       Split(path != nullptr ? path : "/usr/local/bin:/usr/bin", ':')) {
    std::string candidate = StrCat(folder, '/', name);
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

// The presence of a file says little; that it answers says that it is one of ours to run.
Answer TryVersion(const std::string& program) {
  std::string arguments[] = {program, "--version"};
  char* const words[] = {arguments[0].data(), arguments[1].data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || ::waitpid(pid, &status, 0) < 0) return Missing(StrCat("run ", program), error);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Missing(StrCat(program, " --version fails"), 0);
  return Proven(StrCat(program, " answers --version"));
}

Answer TryGvisor() {
  const std::string program = FindInPath("runsc");
  if (program.empty()) return Missing("no runsc in PATH", 0);
  return TryVersion(program);
}

// Where the launcher looks for it (launcher/machine_start.cc): no PATH of a caller's decides what
// root runs.
Answer TryEmulator() {
  constexpr char kProgram[] = "/usr/bin/qemu-system-x86_64";
  if (::access(kProgram, X_OK) != 0) return Missing(StrCat("no ", kProgram), 0);
  return TryVersion(kProgram);
}

}  // namespace

Row ProbeSevSnp() {
  return MakeRow(
      Feature::kSevSnp, Try([] { return TryHost("kvm_amd/parameters/sev_snp", "/dev/sev"); }),
      "an AMD EPYC host with SEV-SNP switched on in firmware and kernel (6.11 or newer)");
}

Row ProbeTdx() {
  return MakeRow(Feature::kTdx, Try([] { return TryHost("kvm_intel/parameters/tdx", nullptr); }),
                 "an Intel host with TDX switched on in firmware and kernel (6.16 or newer)");
}

Row ProbeGvisor() {
  return MakeRow(Feature::kGvisor, Try(TryGvisor), "install gVisor's runsc and put it into PATH");
}

Row ProbeEmulator() {
  return MakeRow(Feature::kEmulator, Try(TryEmulator),
                 "install QEMU's system emulator (Debian: qemu-system-x86)");
}

}  // namespace soma::probe
