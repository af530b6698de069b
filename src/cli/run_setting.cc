// SPDX-License-Identifier: Apache-2.0
#include "cli/run_setting.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "plan/level_choice.h"
#include "policy/decide.h"
#include "policy/environment.h"
#include "policy/level.h"
#include "policy/model.h"
#include "policy/units.h"
#include "runtime/runtime.h"
#include "sandbox/foreground_run.h"

namespace soma::cli {
namespace {

// Where the policy says nothing: enough for a compiler, little enough to have several.
constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;
// The copy may fill half of the disk; the rest is for what the command writes.
constexpr std::uint64_t kCopyShare = 2;

// Names of this machine that mean something else inside; a policy that sets them is followed.
constexpr std::array<std::string_view, 9> kOurOwn = {
    "PATH=", "HOME=", "USER=", "LOGNAME=", "SHELL=", "PWD=", "OLDPWD=", "TMPDIR=", "HOSTNAME="};

bool MeansTheHost(std::string_view variable) {
  return std::ranges::any_of(kOurOwn, [&](auto name) { return variable.starts_with(name); });
}

runtime::Limits LimitsOf(const policy::Limits& wanted) {
  runtime::Limits limits;
  limits.memory_bytes_max = wanted.memory_bytes ? wanted.memory_bytes->value : kMemoryBytes;
  if (wanted.disk_bytes) limits.disk_bytes_max = wanted.disk_bytes->value;
  if (wanted.pids) {
    limits.processes_max =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.pids->value, UINT32_MAX));
  }
  if (wanted.cpu_milli) {
    limits.cpu_percent_max = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(wanted.cpu_milli->value / 10, 1, 100'000));
  }
  return limits;
}

// "src/lib" for /w/src/lib below /w; empty when it lies elsewhere.
std::string Below(const std::string& directory, const std::string& workspace) {
  const std::string prefix = workspace + "/";
  return directory.starts_with(prefix) ? directory.substr(prefix.size()) : std::string();
}

}  // namespace

Result<sandbox::ForegroundOptions> RunSetting(const policy::Policy& policy,
                                              const plan::LevelChoice& choice,
                                              const RunCaller& caller) {
  using policy::Level;
  if (choice.level != Level::kContainer && choice.level != Level::kEmulated) {
    return Fail(
        Errc::kUnimplemented,
        StrCat("soma run cannot start level ", policy::LevelName(choice.level), " (", choice.reason,
               ") in this version: --isolation process, container and emulated can be had,"
               " where no minimum forbids them"));
  }
  sandbox::ForegroundOptions setting;
  setting.level = policy::LevelName(choice.level);
  setting.template_id = kRunTemplate;
  setting.user = caller.is_root ? kRunUser : kOnlyUser;
  if (policy.task.profile.value == policy::TaskProfile::kRooted && !caller.is_root) {
    return Fail(Errc::kFailedPrecondition,
                StrCat("task profile rooted (", policy.task.profile.origin.ToText(),
                       ") needs a range of ids, and an ordinary user has one: profile = \"strict\""
                       " under [task], or run soma as root"));
  }
  setting.profile = policy.task.profile.value == policy::TaskProfile::kStrict
                        ? runtime::Profile::kStrict
                        : runtime::Profile::kRooted;
  setting.limits = LimitsOf(policy.limits);
  setting.workspace = policy.workspace;
  setting.is_hidden = [&policy](std::string_view path) {
    return VerdictOn(policy, path) == policy::PathVerdict::kHide;
  };
  const std::size_t slash = policy.workspace.rfind('/');
  setting.directory =
      StrCat(caller.is_root ? "/home/user/" : "/root/", policy.workspace.substr(slash + 1));
  setting.subdirectory = Below(caller.current_directory, policy.workspace);
  setting.copy_bytes_max = setting.limits.disk_bytes_max / kCopyShare;
  std::vector<std::string_view> host = caller.environment;
  std::erase_if(host, MeansTheHost);
  for (const std::string& variable : ResolveEnvironment(policy, host)) {
    const std::size_t equals = variable.find('=');
    setting.environment.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
  }
  if (policy.limits.time) setting.time_limit = policy.limits.time->value;
  return setting;
}

std::vector<std::string> ExplainSetting(const sandbox::ForegroundOptions& setting) {
  const runtime::Limits& limits = setting.limits;
  std::vector<std::string> lines = RunNotes(setting);
  lines.push_back(StrCat("template ", setting.template_id, ", user ", setting.user,
                         ", task profile ",
                         setting.profile == runtime::Profile::kStrict ? "strict" : "rooted"));
  if (setting.level == "emulated") {
    lines.emplace_back(
        "walls: a kernel of its own on QEMU's software processor; QEMU without a network, in"
        " namespaces of its own, under a seccomp profile, without capabilities");
  } else {
    lines.emplace_back(
        "walls: user, mount, pid, network, ipc, uts and cgroup namespaces of its own; the"
        " template's file tree, no path of the host; a seccomp profile");
  }
  lines.emplace_back(
      "network: every connect and name query is caught and answered outside by the rules below");
  lines.push_back(StrCat("limits: memory ", policy::FormatByteCount(limits.memory_bytes_max),
                         ", processes ", limits.processes_max, ", CPU ", limits.cpu_percent_max,
                         "%, disk ", policy::FormatByteCount(limits.disk_bytes_max)));
  return lines;
}

std::vector<std::string> RunNotes(const sandbox::ForegroundOptions& setting) {
  std::vector<std::string> notes;
  notes.push_back(StrCat("level ", setting.level, ": the workspace is a copy at ",
                         EscapeForTerminal(setting.directory),
                         "; what changes inside stays there and is dropped at the end"));
  if (setting.user == kOnlyUser) {
    notes.emplace_back(
        "an ordinary user's container: one id (root inside is you), limits for each process by"
        " itself, no disk quota");
  }
  if (setting.level == "emulated") {
    notes.emplace_back(
        "level emulated is a virtual machine on a software CPU: it is not a hardware"
        " boundary");
  }
  return notes;
}

}  // namespace soma::cli
