// SPDX-License-Identifier: Apache-2.0
// Policy: everything that one sandbox is allowed to do, as plain data. Made by merge.h out of
// layers (built-in profile, system, user, project, command line), asked by decide.h, turned into
// walls by room `plan`.
//
// Every rule carries its origin, so that a refusal can name it. Paths are absolute and lexically
// normal ("~" and workspace-relative forms are gone), host names lower case.
//
// Narrowing is kept, not folded: a project file becomes one more element of `filesystem`, `network`
// and `environment`, and the answer to a question is the strictest answer of all elements.
// Therefore no content of a project file can allow what was denied without it.
#ifndef SOMA_POLICY_MODEL_H_
#define SOMA_POLICY_MODEL_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/address.h"
#include "policy/level.h"

namespace soma::policy {

// Where a rule was written: "/etc/soma/policy.toml" and line 12, "built-in dev" and line 7, or
// "--allow-net" and line 0.
struct Origin {
  std::string where;
  int line = 0;

  std::string ToText() const;  // "where:line", without ":line" when it is 0
  bool operator==(const Origin&) const = default;
};

template <typename T>
struct Sourced {
  T value{};
  Origin origin;
};

// What may be done below a path, ordered from the strictest.
enum class PathVerdict : std::uint8_t { kHide, kRead, kWrite };

// A path, or a glob over path components: `*` inside a component, `**` for any number of
// components. It covers what it names and everything below. The most specific rule of a rule set
// decides (the one that names the longest prefix); at the same length the later layer does.
struct PathRule {
  PathVerdict verdict = PathVerdict::kHide;
  std::string pattern;  // absolute, normal
  Origin origin;
};

struct FilesystemRules {
  // The answer where no rule matches; absent (a narrowing layer without an opinion) means kWrite.
  std::optional<Sourced<PathVerdict>> fallback;
  std::vector<PathRule> rules;  // later layers last
};

struct PortRange {
  std::uint16_t first = 1;
  std::uint16_t last = 65535;
  bool Contains(std::uint16_t port) const { return first <= port && port <= last; }
  bool operator==(const PortRange&) const = default;
};

// What a network rule names: a host ("example.com", "*.example.com" for every name below it, "*"
// for every name and every public address) or a network.
struct NetworkTarget {
  std::string host;  // lower case, without trailing dot; empty when `cidr` is set
  std::optional<Cidr> cidr;
  PortRange ports;
  bool operator==(const NetworkTarget&) const = default;
};

struct NetworkRule {
  bool allow = false;
  NetworkTarget target;
  std::string text;  // as written
  Origin origin;
};

struct NetworkRules {
  // Whether what no rule names is allowed. Absent in a narrowing layer: allowed, unless the layer
  // has allow rules (then these are all that it allows).
  std::optional<Sourced<bool>> fallback_allow;
  std::vector<NetworkRule> rules;
};

// Environment of the command. Names may end in `*`.
struct EnvironmentRule {
  enum class Kind : std::uint8_t { kPass, kDrop, kSet };
  Kind kind = Kind::kPass;
  std::string name;
  std::string value;  // kSet only
  Origin origin;
};
struct EnvironmentRules {
  std::vector<EnvironmentRule> rules;  // drop beats pass, set beats both
};

// Absent: no limit of ours. Narrowing takes the smaller one.
struct Limits {
  std::optional<Sourced<std::uint64_t>> memory_bytes;
  std::optional<Sourced<std::uint64_t>> pids;
  std::optional<Sourced<std::uint64_t>> cpu_milli;  // thousandths of a processor
  std::optional<Sourced<std::chrono::milliseconds>> time;
  std::optional<Sourced<std::uint64_t>> disk_bytes;  // levels with an upper of their own
  std::optional<Sourced<std::uint64_t>> tmp_bytes;   // the private /tmp
};

struct Isolation {
  std::optional<Sourced<Level>> level;       // absent: auto
  Sourced<Level> minimum{Level::kNone, {}};  // kNone: any level, `none` only when it is named
};

struct Task {
  Sourced<TaskProfile> profile{TaskProfile::kStrict, {}};
  Sourced<bool> ephemeral{false, {}};
};

struct Policy {
  std::string profile;    // name of the built-in profile that it starts from
  std::string workspace;  // absolute real path, always writable unless a rule says otherwise
  Isolation isolation;
  std::vector<FilesystemRules> filesystem;    // never empty; [0] is the base, the rest narrow it
  std::vector<NetworkRules> network;          // never empty; likewise
  std::vector<EnvironmentRules> environment;  // never empty; likewise
  Limits limits;
  Task task;
  std::optional<Origin> locked;      // the layer after which everything may only narrow
  std::vector<std::string> notices;  // what was ignored and why, one line each
};

}  // namespace soma::policy

#endif  // SOMA_POLICY_MODEL_H_
