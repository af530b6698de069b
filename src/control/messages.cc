// SPDX-License-Identifier: Apache-2.0
#include "control/messages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"

namespace soma::control {
namespace {

constexpr std::uint8_t kIsRequest = 1;
constexpr std::uint8_t kIsReply = 2;

// Which fields of a request a verb uses. All others must be zero on the wire.
struct Uses {
  bool sandbox = false;  // required, except for kList (where empty means "from the start")
  bool start = false;    // template, level, profile, memory, pids, CPU
  bool disk = false;     // disk_bytes, inodes
  bool lease = false;
  bool count = false;
  bool token = false;
};

Uses UsesField(Verb verb) {
  switch (verb) {
    case Verb::kHello:
    case Verb::kSockets:
    case Verb::kEvent:
      return {};
    case Verb::kAllocate:
      return {.disk = true, .count = true};
    case Verb::kStart:
      return {.sandbox = true, .start = true, .disk = true, .lease = true, .token = true};
    case Verb::kRenew:
      return {.sandbox = true, .lease = true};
    case Verb::kAttach:
      return {.sandbox = true, .token = true};
    case Verb::kFreeze:
    case Verb::kThaw:
    case Verb::kKill:
    case Verb::kReap:
    case Verb::kList:
    case Verb::kSnapshot:
    case Verb::kStatus:
      return {.sandbox = true};
  }
  return {};
}

template <typename T>
bool Within(T value, T low, T high) {
  return value >= low && value <= high;
}

bool LimitsFit(const Uses& uses, const Limits& limits) {
  if (uses.start && (!Within(limits.memory_bytes, kMemoryBytesMin, kMemoryBytesMax) ||
                     !Within(limits.pids, kPidsMin, kPidsMax) ||
                     !Within(limits.cpu_millis, kCpuMillisMin, kCpuMillisMax))) {
    return false;
  }
  return !uses.disk || (Within(limits.disk_bytes, kDiskBytesMin, kDiskBytesMax) &&
                        Within(limits.inodes, kInodesMin, kInodesMax));
}

bool Valid(const Request& request) {
  const Uses uses = UsesField(request.verb);
  if (request.sequence == 0 || request.verb == Verb::kEvent) return false;
  if (uses.sandbox && request.sandbox.empty() && request.verb != Verb::kList) return false;
  if (uses.start && request.template_id.empty()) return false;
  if (uses.lease && !Within(request.lease_seconds, 1U, kLeaseSecondsMax)) return false;
  if (uses.count && request.count > kAllocateMax) return false;
  return LimitsFit(uses, request.limits);
}

void PutHead(ByteWriter& writer, std::uint8_t direction, Verb verb, std::uint32_t sequence) {
  writer.Put(kMagic);
  writer.Put(kVersion);
  writer.Put(direction);
  writer.Put(std::uint8_t{0});
  writer.Put(static_cast<std::uint16_t>(verb));
  writer.Put(sequence);
}

struct Head {
  Verb verb = Verb::kHello;
  std::uint32_t sequence = 0;
};

Head GetHead(ByteReader& reader, std::uint8_t direction) {
  Head head;
  if (reader.Get<std::uint32_t>() != kMagic) reader.MarkInvalid();
  if (reader.Get<std::uint16_t>() != kVersion) reader.MarkInvalid();
  if (reader.Get<std::uint8_t>() != direction) reader.MarkInvalid();
  if (reader.Get<std::uint8_t>() != 0) reader.MarkInvalid();
  const auto verb = reader.Get<std::uint16_t>();
  if (verb == 0 || verb > kVerbLast) reader.MarkInvalid();
  head.verb = static_cast<Verb>(verb);
  head.sequence = reader.Get<std::uint32_t>();
  return head;
}

// A size byte, then kSizeMax bytes, zero after the text.
template <std::size_t kSizeMax>
void PutName(ByteWriter& writer, const Name<kSizeMax>& name) {
  writer.Put(static_cast<std::uint8_t>(name.text().size()));
  for (const char c : name.text()) writer.Put(static_cast<std::uint8_t>(c));
  for (std::size_t i = name.text().size(); i < kSizeMax; ++i) writer.Put(std::uint8_t{0});
}

ByteView GetPadded(ByteReader& reader, std::size_t size_max) {
  const std::size_t size = reader.Get<std::uint8_t>();
  const ByteView raw = reader.GetRaw(size_max);
  if (!reader.ok() || size > size_max ||
      std::ranges::any_of(raw.subspan(size), [](std::uint8_t byte) { return byte != 0; })) {
    reader.MarkInvalid();
    return {};
  }
  return raw.first(size);
}

template <std::size_t kSizeMax>
Name<kSizeMax> GetName(ByteReader& reader) {
  auto name = Name<kSizeMax>::Create(AsText(GetPadded(reader, kSizeMax)));
  if (!name) {
    reader.MarkInvalid();
    return {};
  }
  return *name;
}

template <typename Enum>
Enum GetEnum(ByteReader& reader, Enum first, Enum last) {
  const auto raw = reader.Get<std::uint8_t>();
  if (!Within(raw, std::to_underlying(first), std::to_underlying(last))) {
    reader.MarkInvalid();
    return first;
  }
  return static_cast<Enum>(raw);
}

bool GetBool(ByteReader& reader) {
  const auto raw = reader.Get<std::uint8_t>();
  if (raw > 1) reader.MarkInvalid();
  return raw == 1;
}

// The rest of a packet is zero.
void FinishPacket(ByteReader& reader) {
  const ByteView rest = reader.GetRaw(reader.remaining());
  if (std::ranges::any_of(rest, [](std::uint8_t byte) { return byte != 0; })) reader.MarkInvalid();
}

Packet ToPacket(const Bytes& bytes) {
  Packet packet{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), packet.size()), packet.begin());
  return packet;
}

void PutStatus(ByteWriter& writer, const SandboxStatus& status) {
  PutName(writer, status.sandbox);
  writer.Put(std::to_underlying(status.state));
  writer.Put(std::to_underlying(status.level));
  writer.Put(status.lease_remaining_ms);
  writer.Put(status.exit_code);
  writer.Put(status.exit_signal);
}

SandboxStatus GetStatus(ByteReader& reader) {
  SandboxStatus status;
  status.sandbox = GetName<32>(reader);
  status.state = GetEnum(reader, SandboxState::kNone, SandboxState::kLost);
  status.level = GetEnum(reader, Level::kContainer, Level::kMicrovm);
  status.lease_remaining_ms = reader.Get<std::uint32_t>();
  status.exit_code = reader.Get<std::uint8_t>();
  status.exit_signal = reader.Get<std::uint8_t>();
  return status;
}

std::string Printable(std::string_view text) {
  std::string out(text.substr(0, kDetailBytesMax));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

}  // namespace

bool SameToken(const Token& a, const Token& b) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

Result<Packet> Encode(const Request& request) {
  if (!Valid(request)) return Fail(Errc::kOutOfRange, "a request is out of its bounds");
  const Uses uses = UsesField(request.verb);
  Bytes bytes;
  bytes.reserve(kMessageBytes);
  ByteWriter writer(bytes);
  PutHead(writer, kIsRequest, request.verb, request.sequence);
  PutName(writer, uses.sandbox ? request.sandbox : SandboxId());
  PutName(writer, uses.start ? request.template_id : TemplateId());
  writer.Put(uses.start ? std::to_underlying(request.level) : std::uint8_t{0});
  writer.Put(uses.start ? std::to_underlying(request.profile) : std::uint8_t{0});
  writer.Put(uses.start ? request.limits.memory_bytes : std::uint64_t{0});
  writer.Put(uses.start ? request.limits.pids : 0U);
  writer.Put(uses.start ? request.limits.cpu_millis : 0U);
  writer.Put(uses.disk ? request.limits.disk_bytes : std::uint64_t{0});
  writer.Put(uses.disk ? request.limits.inodes : std::uint64_t{0});
  writer.Put(uses.lease ? request.lease_seconds : 0U);
  writer.Put(uses.count ? request.count : 0U);
  writer.PutRaw(uses.token ? request.token : Token{});
  return ToPacket(bytes);
}

Result<Request> DecodeRequest(ByteView packet) {
  if (packet.size() != kMessageBytes) {
    return Fail(Errc::kInvalidArgument, "a request has another size");
  }
  ByteReader reader(packet);
  const Head head = GetHead(reader, kIsRequest);
  Request request;
  request.verb = head.verb;
  request.sequence = head.sequence;
  request.sandbox = GetName<32>(reader);
  request.template_id = GetName<64>(reader);
  const Uses uses = UsesField(head.verb);
  if (uses.start) {
    request.level = GetEnum(reader, Level::kContainer, Level::kMicrovm);
    request.profile = GetEnum(reader, TaskProfile::kStrict, TaskProfile::kRooted);
    request.limits.memory_bytes = reader.Get<std::uint64_t>();
    request.limits.pids = reader.Get<std::uint32_t>();
    request.limits.cpu_millis = reader.Get<std::uint32_t>();
  } else {
    reader.GetRaw(2 + 8 + 4 + 4);  // compared with zero by the re-encoding below
  }
  if (uses.disk) {
    request.limits.disk_bytes = reader.Get<std::uint64_t>();
    request.limits.inodes = reader.Get<std::uint64_t>();
  } else {
    reader.GetRaw(8 + 8);
  }
  request.lease_seconds = reader.Get<std::uint32_t>();
  request.count = reader.Get<std::uint32_t>();
  std::ranges::copy(reader.GetRaw(reader.ok() ? request.token.size() : 0), request.token.begin());
  FinishPacket(reader);
  if (!reader.ok()) return Fail(Errc::kInvalidArgument, "a request is malformed");
  // One encoding for each message: whatever a verb does not use must have been zero.
  auto again = Encode(request);
  if (!again || !std::ranges::equal(*again, packet)) {
    return Fail(Errc::kInvalidArgument, "a request is out of its bounds");
  }
  return request;
}

Packet Encode(const Reply& reply) {
  Bytes bytes;
  bytes.reserve(kMessageBytes);
  ByteWriter writer(bytes);
  PutHead(writer, kIsReply, reply.verb, reply.sequence);
  writer.Put(std::uint8_t{reply.ok});
  writer.Put(reply.ok ? std::uint8_t{0} : std::to_underlying(reply.code));
  const std::string detail = reply.ok ? std::string() : Printable(reply.detail);
  writer.Put(static_cast<std::uint8_t>(detail.size()));
  writer.PutRaw(AsBytes(detail));
  for (std::size_t i = detail.size(); i < kDetailBytesMax; ++i) writer.Put(std::uint8_t{0});
  PutStatus(writer, reply.status);
  writer.Put(std::to_underlying(reply.launcher.regime));
  writer.Put(reply.launcher.levels);
  writer.Put(reply.launcher.sandboxes);
  writer.Put(reply.launcher.sandboxes_max);
  writer.Put(reply.launcher.epoch);
  writer.Put(reply.descriptor_count);
  for (std::size_t i = 0; i < kDescriptorsMax; ++i) {
    writer.Put(i < reply.descriptor_count ? std::to_underlying(reply.descriptors[i])
                                          : std::uint8_t{0});
  }
  writer.Put(reply.status.memory_kills);
  writer.Put(reply.status.refused_forks);
  writer.Put(reply.usage.memory_bytes);
  writer.Put(reply.usage.memory_cache_bytes);
  writer.Put(reply.usage.cpu_microseconds);
  return ToPacket(bytes);
}

Result<Reply> DecodeReply(ByteView packet) {
  if (packet.size() != kMessageBytes) {
    return Fail(Errc::kInvalidArgument, "a reply has another size");
  }
  ByteReader reader(packet);
  const Head head = GetHead(reader, kIsReply);
  Reply reply;
  reply.verb = head.verb;
  reply.sequence = head.sequence;
  reply.ok = GetBool(reader);
  const auto code = reader.Get<std::uint8_t>();
  if (code > std::to_underlying(Errc::kInternal)) reader.MarkInvalid();
  if (!reply.ok) reply.code = static_cast<Errc>(code);
  reply.detail = AsText(GetPadded(reader, kDetailBytesMax));
  reply.status = GetStatus(reader);
  reply.launcher.regime = GetEnum(reader, Regime::kSystem, Regime::kRootless);
  reply.launcher.levels = reader.Get<std::uint8_t>();
  reply.launcher.sandboxes = reader.Get<std::uint32_t>();
  reply.launcher.sandboxes_max = reader.Get<std::uint32_t>();
  reply.launcher.epoch = reader.Get<std::uint32_t>();
  reply.descriptor_count = reader.Get<std::uint8_t>();
  if (reply.descriptor_count > kDescriptorsMax) reader.MarkInvalid();
  for (std::size_t i = 0; reader.ok() && i < reply.descriptor_count; ++i) {
    reply.descriptors[i] = GetEnum(reader, DescriptorKind::kWire, DescriptorKind::kCaptureDnsTcp);
  }
  reader.GetRaw(reader.ok() ? kDescriptorsMax - reply.descriptor_count : 0);
  reply.status.memory_kills = reader.Get<std::uint32_t>();
  reply.status.refused_forks = reader.Get<std::uint32_t>();
  reply.usage.memory_bytes = reader.Get<std::uint64_t>();
  reply.usage.memory_cache_bytes = reader.Get<std::uint64_t>();
  reply.usage.cpu_microseconds = reader.Get<std::uint64_t>();
  FinishPacket(reader);
  if (!reader.ok()) return Fail(Errc::kInvalidArgument, "a reply is malformed");
  if (!std::ranges::equal(Encode(reply), packet)) {
    return Fail(Errc::kInvalidArgument, "a reply has bytes that nobody uses");
  }
  return reply;
}

Reply Refusal(const Request& request, const Error& error) {
  Reply reply;
  reply.verb = request.verb;
  reply.sequence = request.sequence;
  reply.ok = false;
  reply.code = error.code();
  reply.detail = error.message();
  return reply;
}

Reply Accepted(const Request& request) {
  Reply reply;
  reply.verb = request.verb;
  reply.sequence = request.sequence;
  return reply;
}

std::string_view VerbName(Verb verb) {
  static constexpr std::string_view kNames[] = {"",     "hello",    "allocate", "start",   "freeze",
                                                "thaw", "kill",     "reap",     "renew",   "attach",
                                                "list", "snapshot", "status",   "sockets", "event"};
  return kNames[std::to_underlying(verb)];
}

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kContainer:
      return "container";
    case Level::kEmulated:
      return "emulated";
    case Level::kMicrovm:
      return "microvm";
  }
  return "unknown";
}

std::string_view StateName(SandboxState state) {
  static constexpr std::string_view kNames[] = {"none",   "starting", "running", "frozen",
                                                "exited", "killed",   "expired", "lost"};
  return kNames[std::to_underlying(state)];
}

std::string_view TaskProfileName(TaskProfile profile) {
  return profile == TaskProfile::kStrict ? "strict" : "rooted";
}

}  // namespace soma::control
