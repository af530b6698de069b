// SPDX-License-Identifier: Apache-2.0
// Encode and Decode of a WallPlan: a version, then every field in the order of the struct. Both
// directions are one description (`Visit`), so that they can't drift apart.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {
namespace {

constexpr std::uint32_t kVersion = 1;

class Encoder {
 public:
  explicit Encoder(Bytes& out) : writer_(out) {}

  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  void Number(const T& value, std::uint64_t /*max*/ = 0) {
    writer_.Put(value);
  }
  void Flag(const bool& value) { writer_.Put(static_cast<std::uint8_t>(value)); }
  template <typename E>
  void Enum(const E& value, std::uint64_t /*first*/, std::uint64_t /*last*/) {
    writer_.Put(static_cast<std::uint32_t>(value));
  }
  void Text(const std::string& text, std::size_t /*max*/) { writer_.PutString(text); }
  template <typename T, typename F>
  void List(const std::vector<T>& list, std::size_t /*max*/, F each) {
    writer_.Put(static_cast<std::uint32_t>(list.size()));
    for (const T& item : list) each(*this, item);
  }
  void Slot(const std::optional<std::uint32_t>& slot) {
    Flag(slot.has_value());
    writer_.Put(slot.value_or(0));
  }

 private:
  ByteWriter writer_;
};

class Decoder {
 public:
  explicit Decoder(ByteView in) : reader_(in) {}

  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  void Number(T& value) {
    value = reader_.Get<T>();
  }
  void Flag(bool& value) {
    const auto raw = reader_.Get<std::uint8_t>();
    if (raw > 1) reader_.MarkInvalid();
    value = raw == 1;
  }
  template <typename E>
  void Enum(E& value, std::uint64_t first, std::uint64_t last) {
    const auto raw = reader_.Get<std::uint32_t>();
    if (raw < first || raw > last) {
      reader_.MarkInvalid();
      return;  // never holds a value that the enum does not have
    }
    value = static_cast<E>(raw);
  }
  void Text(std::string& text, std::size_t size_max) { text = reader_.GetString(size_max); }
  template <typename T, typename F>
  void List(std::vector<T>& list, std::size_t count_max, F each) {
    const auto count = reader_.Get<std::uint32_t>();
    // Every item has at least one byte: a lying count can't make us allocate more than was sent.
    if (count > count_max || count > reader_.remaining()) reader_.MarkInvalid();
    for (std::uint32_t i = 0; i < count && reader_.ok(); ++i) each(*this, list.emplace_back());
  }
  void Slot(std::optional<std::uint32_t>& slot) {
    bool there = false;
    Flag(there);
    const auto number = reader_.Get<std::uint32_t>();
    slot = there ? std::optional(number) : std::nullopt;
  }
  bool AtEnd() const { return reader_.AtEnd(); }

 private:
  ByteReader reader_;
};

template <typename Coder, typename Ranges>
void VisitRanges(Coder& coder, Ranges& ranges) {
  coder.List(ranges, kPlanItemsMax, [](auto& c, auto& range) {
    c.Number(range.inside);
    c.Number(range.outside);
    c.Number(range.count);
  });
}

template <typename Coder, typename Texts>
void VisitTexts(Coder& coder, Texts& texts, std::size_t count_max, std::size_t size_max) {
  coder.List(texts, count_max, [size_max](auto& c, auto& text) { c.Text(text, size_max); });
}

template <typename Coder, typename Item>
void VisitMount(Coder& coder, Item& item) {
  coder.Enum(item.kind, 1, static_cast<std::uint64_t>(MountKind::kHide));
  coder.Text(item.target, kPlanPathBytesMax);
  coder.Text(item.source, kPlanPathBytesMax);
  coder.Slot(item.slot);
  coder.Flag(item.read_only);
  coder.Flag(item.no_exec);
  coder.Flag(item.allow_suid);
  coder.Flag(item.optional);
  coder.Number(item.size_bytes_max);
  coder.Number(item.inodes_max);
  coder.Number(item.mode);
  coder.Text(item.content, kPlanTextBytesMax);
  VisitTexts(coder, item.lowers, kPlanItemsMax, kPlanPathBytesMax);
  coder.Text(item.upper, kPlanPathBytesMax);
  coder.Text(item.work, kPlanPathBytesMax);
  coder.Flag(item.volatile_upper);
  VisitRanges(coder, item.id_map.uids);
  VisitRanges(coder, item.id_map.gids);
}

template <typename Coder, typename Plan>
void VisitPrivileges(Coder& coder, Plan& plan) {
  coder.Number(plan.uid);
  coder.Number(plan.gid);
  coder.List(plan.groups, kPlanItemsMax, [](auto& c, auto& group) { c.Number(group); });
  coder.Number(plan.capability_bounding);
  coder.Flag(plan.keep_capabilities);
  coder.Flag(plan.no_new_privs);
  coder.Flag(plan.landlock.enabled);
  coder.Number(plan.landlock.abi_min);
  coder.List(plan.landlock.rules, kPlanItemsMax, [](auto& c, auto& rule) {
    c.Text(rule.path, kPlanPathBytesMax);
    c.Number(rule.rights);
    c.Flag(rule.optional);
  });
  coder.Flag(plan.landlock.scope_signals);
  coder.Flag(plan.landlock.scope_abstract_sockets);
  coder.Flag(plan.seccomp.enabled);
  coder.Enum(plan.seccomp.profile, 1, static_cast<std::uint64_t>(SeccompProfile::kMonitor));
  coder.Enum(plan.seccomp.notify, 0, static_cast<std::uint64_t>(SeccompNotify::kMutating));
}

template <typename Coder, typename Plan>
void VisitLimits(Coder& coder, Plan& plan) {
  coder.List(plan.limits, kPlanItemsMax, [](auto& c, auto& limit) {
    c.Number(limit.resource);
    c.Number(limit.value);
  });
  coder.Enum(plan.cgroup.mode, 0, static_cast<std::uint64_t>(CgroupMode::kJoin));
  coder.Text(plan.cgroup.name, kPlanPathBytesMax);
  coder.List(plan.cgroup.slots, kPlanItemsMax, [](auto& c, auto& slot) { c.Number(slot); });
  coder.Number(plan.cgroup.memory_bytes_max);
  coder.Number(plan.cgroup.pids_max);
  coder.Number(plan.cgroup.cpu_percent_max);
}

template <typename Coder, typename Plan>
void Visit(Coder& coder, Plan& plan) {
  coder.List(plan.user_namespaces, 2, [](auto& c, auto& user) {
    VisitRanges(c, user.uids);
    VisitRanges(c, user.gids);
  });
  coder.Enum(plan.namespaces, 0, static_cast<std::uint64_t>(Namespaces::kAll));
  coder.Flag(plan.init);
  coder.Text(plan.host_name, kPlanPathBytesMax);
  coder.List(plan.mounts, kPlanItemsMax, [](auto& c, auto& item) { VisitMount(c, item); });
  coder.Enum(plan.network, 0, static_cast<std::uint64_t>(NetworkKind::kCapture));
  VisitPrivileges(coder, plan);
  VisitLimits(coder, plan);
  coder.Enum(plan.terminal, 0, static_cast<std::uint64_t>(TerminalKind::kKeep));
  coder.List(plan.descriptors, kPlanItemsMax, [](auto& c, auto& pass) {
    c.Number(pass.slot);
    c.Number(pass.inside);
  });
  coder.Text(plan.working_directory, kPlanPathBytesMax);
  VisitTexts(coder, plan.arguments, kPlanArgumentsMax, kPlanTextBytesMax);
  coder.Slot(plan.execute_slot);
  VisitTexts(coder, plan.environment, kPlanArgumentsMax, kPlanTextBytesMax);
  coder.Number(plan.umask);
  VisitTexts(coder, plan.notes, kPlanItemsMax, kPlanTextBytesMax);
}

}  // namespace

Bytes Encode(const WallPlan& plan) {
  Bytes out;
  Encoder encoder(out);
  encoder.Number(kVersion);
  Visit(encoder, plan);
  return out;
}

Result<WallPlan> Decode(ByteView encoded) {
  if (encoded.size() > kPlanEncodedBytesMax) {
    return Fail(Errc::kOutOfRange, "wall plan: too many bytes");
  }
  Decoder decoder(encoded);
  std::uint32_t version = 0;
  decoder.Number(version);
  if (version != kVersion) return Fail(Errc::kInvalidArgument, "wall plan: another version");
  WallPlan plan;
  Visit(decoder, plan);
  if (!decoder.AtEnd()) return Fail(Errc::kInvalidArgument, "wall plan: malformed");
  SOMA_TRY_WHILE(Validate(plan), "wall plan");
  return plan;
}

}  // namespace soma::walls
