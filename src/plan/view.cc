// SPDX-License-Identifier: Apache-2.0
#include "plan/view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <set>
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
#include "sys/landlock.h"
#include "walls/plan.h"

namespace soma::plan {

namespace {

using policy::IsWithin;
using policy::PathFact;
using policy::PathKind;
using policy::PathVerdict;
using walls::MountItem;
using walls::MountKind;

constexpr std::uint64_t kSkeletonBytesMax = 1 << 20;  // directories only
constexpr std::uint64_t kScratchBytesDefault = 1ULL << 30;

// One place of the tree at which the view changes.
struct Node {
  std::string path;  // inside
  enum class Kind : std::uint8_t { kHide, kBind, kLink, kScratch, kProc, kDevices };
  Kind kind = Kind::kBind;
  bool writable = false;
  const PathFact* fact = nullptr;
  std::optional<policy::Origin> hidden_by;
  std::optional<std::size_t> mount;  // of a kBind that is mounted: its number in the view
};

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

class ViewBuilder {
 public:
  explicit ViewBuilder(const ViewInputs& inputs) : in_(inputs) { view_.effective = inputs.policy; }

  Result<View> Build() {
    HideRealNames();
    AddFixedPlaces();
    for (const PathFact& fact : in_.facts.root) AddRootEntry(fact);
    for (const PathFact& fact : in_.facts.rules) SOMA_TRY(AddRulePath(fact));
    SortNodes();
    view_.mounts.push_back({.kind = MountKind::kTmpfs,
                            .target = "/",
                            .read_only = true,
                            .size_bytes_max = kSkeletonBytesMax});
    AddLandlock("/", sys::kLandlockReadExecute);
    for (std::size_t i = 0; i < nodes_.size(); ++i) Emit(i);
    AllowOwnPlaces();
    return std::move(view_);
  }

 private:
  // A hide rule that names a symbolic link means what it points to as well.
  void HideRealNames() {
    for (const PathFact& fact : in_.facts.rules) {
      if (fact.real == fact.path || VerdictOn(in_.policy, fact.path) != PathVerdict::kHide)
        continue;
      const policy::Decision decision = DecidePath(in_.policy, fact.path, policy::Access::kRead);
      view_.effective.filesystem.front().rules.push_back(
          {PathVerdict::kHide, fact.real, decision.origin});
    }
  }

  // Writes to the sandbox's own places are nobody's business; longer rules still hold below them.
  void AllowOwnPlaces() {
    std::vector<std::string> own = view_.scratch;
    own.insert(own.end(), {"/proc", "/dev"});
    for (policy::FilesystemRules& layer : view_.effective.filesystem) {
      for (const std::string& path : own) {
        layer.rules.push_back({PathVerdict::kWrite, path, {"private to the sandbox", 0}});
      }
    }
  }

  bool HasRuleFor(std::string_view path) const {
    return std::ranges::any_of(in_.facts.rules,
                               [path](const PathFact& fact) { return fact.path == path; });
  }

  // The first one that claims a place has it: fixed places, then "/", then rules.
  void AddNode(Node node) {
    if (std::ranges::find(nodes_, node.path, &Node::path) == nodes_.end()) {
      nodes_.push_back(std::move(node));
    }
  }

  void AddFixedPlaces() {
    AddNode({.path = "/proc", .kind = Node::Kind::kProc});
    AddNode({.path = "/dev", .kind = Node::Kind::kDevices});
    for (const char* path : {"/tmp", "/var/tmp"}) {
      if (!HasRuleFor(path)) AddNode({.path = path, .kind = Node::Kind::kScratch});
    }
    if (!in_.home.empty() && VerdictOn(view_.effective, in_.home) == PathVerdict::kHide) {
      AddNode({.path = in_.home, .kind = Node::Kind::kScratch});
    }
  }

  bool IsFixed(std::string_view path) const {
    return std::ranges::any_of(nodes_, [path](const Node& node) {
      return node.kind != Node::Kind::kBind && node.kind != Node::Kind::kHide && node.path == path;
    });
  }

  void AddRootEntry(const PathFact& fact) {
    if (IsFixed(fact.path) || HasRuleFor(fact.path)) return;
    if (VerdictOn(view_.effective, fact.path) == PathVerdict::kHide) return;
    const bool is_link = !fact.link_text.empty();
    if (!is_link && fact.kind == PathKind::kMissing) return;
    AddNode({.path = fact.path,
             .kind = is_link ? Node::Kind::kLink : Node::Kind::kBind,
             .fact = &fact});
  }

  Status AddRulePath(const PathFact& fact) {
    for (const char* place : {"/dev", "/proc"}) {
      if (!IsWithin(fact.path, place)) continue;
      return Fail(Errc::kInvalidArgument,
                  StrCat("a rule names ", EscapeForTerminal(fact.path), ", but ", place,
                         " is the sandbox's own and can't hold anything of the host"));
    }
    const PathVerdict verdict = VerdictOn(view_.effective, fact.path);
    if (verdict == PathVerdict::kHide) {
      const policy::Decision decision =
          DecidePath(view_.effective, fact.path, policy::Access::kRead);
      if (IsFixed(fact.path)) return {};
      AddNode({.path = fact.real,
               .kind = Node::Kind::kHide,
               .fact = &fact,
               .hidden_by = decision.origin});
      return {};
    }
    if (LeadsThroughWritable(view_.effective, fact)) {
      view_.notices.push_back(PlantedNotice(fact));
      return {};
    }
    // A link in "/" itself stays one: /bin is usr/bin, not a second tree.
    const bool is_root_link = !fact.link_text.empty() && ParentOf(fact.path) == "/";
    AddNode({.path = fact.path,
             .kind = is_root_link ? Node::Kind::kLink : Node::Kind::kBind,
             .writable = verdict == PathVerdict::kWrite,
             .fact = &fact});
    return {};
  }

  void SortNodes() {
    std::ranges::sort(nodes_, [](const Node& a, const Node& b) {
      // "/" sorts before every other byte, so that a parent and all below it stay together.
      return std::ranges::lexicographical_compare(a.path, b.path, [](char x, char y) {
        const auto rank = [](char c) {
          return c == '/' ? 0 : static_cast<int>(static_cast<unsigned char>(c)) + 1;
        };
        return rank(x) < rank(y);
      });
    });
  }

  // The nearest node above that made a difference; null: the empty root.
  const Node* Above(std::size_t index) {
    while (!open_.empty() && !IsWithin(nodes_[index].path, nodes_[open_.back()].path))
      open_.pop_back();
    return open_.empty() ? nullptr : &nodes_[open_.back()];
  }

  bool HasVisibleBelow(std::size_t index) const {
    for (std::size_t i = index + 1;
         i < nodes_.size() && IsWithin(nodes_[i].path, nodes_[index].path); ++i) {
      if (nodes_[i].kind != Node::Kind::kHide) return true;
    }
    return false;
  }

  void Emit(std::size_t index) {
    const Node& node = nodes_[index];
    const Node* above = Above(index);
    if (above != nullptr && above->mount && above->writable) PinAncestors(*above, node);
    switch (node.kind) {
      case Node::Kind::kProc:
        view_.mounts.push_back({.kind = MountKind::kProc, .target = node.path});
        AddLandlock(node.path, sys::kLandlockReadExecute | sys::kLandlockWriteFile);
        break;
      case Node::Kind::kDevices:
        view_.mounts.push_back({.kind = MountKind::kDevices,
                                .target = node.path,
                                .size_bytes_max = ScratchBytesMax()});
        AddLandlock(node.path,
                    sys::kLandlockReadExecute | sys::kLandlockWrite | sys::kLandlockIoctlDev);
        break;
      case Node::Kind::kScratch:
        EmitScratch(node);
        break;
      case Node::Kind::kLink:
        view_.mounts.push_back(
            {.kind = MountKind::kSymlink, .target = node.path, .source = node.fact->link_text});
        return;
      case Node::Kind::kHide:
        EmitHidden(index, above);
        break;
      case Node::Kind::kBind:
        if (above != nullptr && above->kind == Node::Kind::kBind &&
            above->writable == node.writable)
          return;
        nodes_[index].mount = view_.mounts.size();
        EmitBind(node);
        break;
    }
    open_.push_back(index);
  }

  // Of each place that lies in memory: /tmp and its like, and /dev/shm.
  std::uint64_t ScratchBytesMax() const {
    const auto& limit = in_.policy.limits.tmp_bytes;
    return limit ? limit->value : kScratchBytesDefault;
  }

  void EmitScratch(const Node& node) {
    const bool is_home = node.path == in_.home;
    view_.mounts.push_back({.kind = MountKind::kTmpfs,
                            .target = node.path,
                            .optional = true,
                            .size_bytes_max = ScratchBytesMax(),
                            .mode = is_home ? 0700U : 01777U});
    AddLandlock(node.path, sys::kLandlockReadExecute | sys::kLandlockWrite);
    view_.scratch.push_back(node.path);
  }

  void EmitHidden(std::size_t index, const Node* above) {
    const Node& node = nodes_[index];
    view_.hidden.push_back({node.fact->path, *node.hidden_by});
    const bool has_visible_below = HasVisibleBelow(index);
    const bool is_directory = node.fact->kind == PathKind::kDirectory;
    if (above != nullptr && above->kind == Node::Kind::kBind) {
      if (has_visible_below) {
        view_.mounts.push_back({.kind = MountKind::kTmpfs,
                                .target = node.path,
                                .read_only = true,
                                .size_bytes_max = kSkeletonBytesMax});
      } else {
        view_.mounts.push_back({.kind = MountKind::kHide, .target = node.path});
      }
      return;
    }
    // In the private home a refusal says more than an absence: what is there on the host can be
    // seen to be closed.
    if (above == nullptr || above->kind != Node::Kind::kScratch || has_visible_below) return;
    view_.mounts.push_back({.kind = is_directory ? MountKind::kDirectory : MountKind::kFile,
                            .target = node.path,
                            .mode = 0});
  }

  // Whoever renames a folder takes along what is mounted below it, and the next run finds under the
  // rule's path nothing to cover. A folder that is a mount point can't be renamed (EBUSY,
  // rename(2)), so each one between a writable bind and what differs below it is bound onto itself.
  void PinAncestors(const Node& above, const Node& node) {
    const bool is_covering =
        node.kind != Node::Kind::kLink && !(node.kind == Node::Kind::kBind && node.writable);
    if (!is_covering) return;
    std::vector<std::string> ancestors;
    for (std::string at = ParentOf(node.path); at != above.path && at != "/"; at = ParentOf(at)) {
      ancestors.push_back(at);
    }
    const MountItem bind = view_.mounts[*above.mount];
    const std::size_t prefix = above.path == "/" ? 0 : above.path.size();
    for (const std::string& path : std::views::reverse(ancestors)) {
      if (!pinned_.insert(path).second) continue;
      MountItem pin = bind;
      pin.target = path;
      pin.source = (bind.source == "/" ? "" : bind.source) + path.substr(prefix);
      pin.optional = true;
      view_.mounts.push_back(std::move(pin));
      view_.pinned.push_back(
          {path, node.path, DecidePath(view_.effective, node.path, policy::Access::kWrite)});
    }
  }

  void EmitBind(const Node& node) {
    MountItem item{.kind = MountKind::kBind, .target = node.path, .source = node.fact->real};
    item.read_only = !node.writable;
    // A path that vanishes between the look and the mount is no reason to stop.
    item.optional = node.path != in_.policy.workspace;
    const bool is_personal = !in_.home.empty() && IsWithin(node.path, in_.home);
    if (in_.ids && (node.writable || is_personal)) {
      item.id_map.uids = {{node.fact->owner_uid, in_.ids->sandbox_uid, 1}};
      item.id_map.gids = {{node.fact->owner_gid, in_.ids->sandbox_gid, 1}};
    }
    view_.mounts.push_back(std::move(item));
    if (node.writable) AddLandlock(node.path, sys::kLandlockReadExecute | sys::kLandlockWrite);
  }

  void AddLandlock(const std::string& path, std::uint64_t rights) {
    view_.landlock.push_back({.path = path, .rights = rights, .optional = path != "/"});
  }

  const ViewInputs& in_;
  View view_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> open_;  // the nodes above the one at hand
  std::set<std::string> pinned_;
};

}  // namespace

bool LeadsThroughWritable(const policy::Policy& policy, const PathFact& fact) {
  if (fact.real == fact.path) return false;
  for (std::string at = ParentOf(fact.path); at != "/"; at = ParentOf(at)) {
    if (VerdictOn(policy, at) == PathVerdict::kWrite) return true;
  }
  return false;
}

std::string PlantedNotice(const PathFact& fact) {
  return StrCat(EscapeForTerminal(fact.path),
                " leads through a symbolic link in a place that the sandbox can write to: the rule "
                "is not followed");
}

Result<View> BuildView(const ViewInputs& inputs) { return ViewBuilder(inputs).Build(); }

}  // namespace soma::plan
