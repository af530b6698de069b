// SPDX-License-Identifier: Apache-2.0
#include "front/policy_judge.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "plan/view.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "policy/path_pattern.h"
#include "walls/judge.h"
#include "workspace/path_probe.h"

namespace soma::front {

namespace {

using walls::RequestKind;
using walls::Verdict;

constexpr std::uint16_t kDnsPort = 53;  // RFC 1035

std::string RuleText(const policy::Decision& decision) {
  if (decision.origin.where.empty()) return decision.rule;
  return StrCat(decision.rule, " (", decision.origin.ToText(), ")");
}

Verdict Refuse(int errno_value, const policy::Decision& decision) {
  return Verdict::Deny(errno_value, RuleText(decision), decision.remedy);
}

}  // namespace

Verdict PolicyJudge::Decide(const walls::Request& request) {
  switch (request.kind) {
    case RequestKind::kOpenWrite:
    case RequestKind::kCreate:
    case RequestKind::kSymlink:
    case RequestKind::kRemove:
    case RequestKind::kTruncate:
    case RequestKind::kSetAttributes:
      return DecideWrite(request.path);
    case RequestKind::kRename:
      return DecideRename(request.other, request.path);
    case RequestKind::kLink: {
      // A second name for a file is a way to write it.
      const Verdict verdict = DecideWrite(request.other);
      return verdict.allowed ? DecideWrite(request.path) : verdict;
    }
    case RequestKind::kExecute:
      // What may not be run isn't in the view.
      return Verdict::Allow();
    case RequestKind::kConnect:
      return DecideConnect(request.address);
    case RequestKind::kBind:
      // The network namespace is the task's own; a socket in the file tree is a file.
      return request.address.path ? DecideWrite(*request.address.path) : Verdict::Allow();
  }
  return Verdict::Deny(EPERM, "a request of an unknown kind", "");
}

Verdict PolicyJudge::DecideWrite(const walls::RequestPath& path) const {
  // Through /dev/stdout or /proc/self/fd a task reaches descriptors that it already has.
  if (policy::IsWithin(path.absolute, "/proc") || policy::IsWithin(path.absolute, "/dev")) {
    return Verdict::Allow();
  }
  if (path.real.empty()) return DecideUnseen(path);
  const policy::Decision decision = DecidePath(view_.effective, path.real, policy::Access::kWrite);
  if (decision.allowed) return Verdict::Allow();
  return Refuse(EACCES, decision);
}

Verdict PolicyJudge::DecideRename(const walls::RequestPath& from,
                                  const walls::RequestPath& to) const {
  for (const walls::RequestPath* path : {&from, &to}) {
    const Verdict verdict = DecideWrite(*path);
    if (!verdict.allowed) return verdict;
    // The kernel would refuse it too, and not say why.
    const auto pinned = std::ranges::find(view_.pinned, path->real, &plan::PinnedPath::path);
    if (pinned == view_.pinned.end()) continue;
    return Verdict::Deny(
        EBUSY, StrCat("it would move ", pinned->covered, ": ", RuleText(pinned->reason)),
        StrCat("no rule for ", pinned->covered, ", or rename what else lies in the folder"));
  }
  return Verdict::Allow();
}

// A path whose parent isn't in the view. The task gets the answer that it would get anyway, and so
// learns nothing of the host; the user learns that something of the host was meant, if it was.
Verdict PolicyJudge::DecideUnseen(const walls::RequestPath& path) const {
  const policy::Decision decision = DecidePath(policy_, path.absolute, policy::Access::kWrite);
  if (decision.allowed) return Verdict::Allow();
  const std::string parent = path.absolute.substr(0, path.absolute.rfind('/'));
  if (workspace::LookAt(parent).kind != policy::PathKind::kDirectory) return Verdict::Allow();
  return Refuse(ENOENT, decision);
}

Verdict PolicyJudge::DecideSocketPath(const walls::RequestPath& path) const {
  // Talking to a service is more than reading its socket's name.
  return path.exists ? DecideWrite(path) : Verdict::Allow();
}

Verdict PolicyJudge::DecideConnect(const walls::RequestAddress& address) const {
  if (address.family == AF_UNIX) {
    return address.path ? DecideSocketPath(*address.path) : Verdict::Allow();
  }
  if (address.family != AF_INET && address.family != AF_INET6) return Verdict::Allow();
  if (has_broker_) return Verdict::Allow();
  const auto ip = policy::ParseIpAddress(address.host);
  if (!ip) return Verdict::Deny(ECONNREFUSED, "an address that can't be read", "");
  if (address.port == kDnsPort) {
    const policy::Decision decision = DecideLookup(policy_, "any.name.invalid");
    return Verdict::Deny(ECONNREFUSED, RuleText(decision),
                         "--allow-net HOST[:PORT] for the host whose name was to be looked up");
  }
  // Loopback is the sandbox's own: its servers talk to its clients there.
  if (ClassifyAddress(*ip) == policy::AddressClass::kLoopback) return Verdict::Allow();
  const policy::Decision decision =
      policy::DecideConnect(policy_, {.name = "", .address = ip, .port = address.port});
  if (decision.allowed) return Verdict::Allow();
  return Refuse(ECONNREFUSED, decision);
}

}  // namespace soma::front
