// SPDX-License-Identifier: Apache-2.0
// The messages between server, launcher and monitor: one fixed-size packet each, over a unix
// SOCK_SEQPACKET socket, descriptors beside it by SCM_RIGHTS.
//
// Who speaks:
//   server   -> launcher   every verb; the launcher knows the peer by its uid (SO_PEERCRED)
//   server   -> monitor    kAttach first (peer uid and token), then kRenew, kKill, kStatus
//   launcher -> monitor    kKill, kRenew, kStatus (peer uid 0, or the launcher's own when rootless)
//   monitor  -> whoever is attached: kEvent replies (sequence 0) when the sandbox's state changes
//
// The sender is assumed hostile: a request names a sandbox, a template and numbers, never a path,
// an id of the host, a capability, a mount or a filter. Decode is total: it accepts a packet only
// when every byte is the one that Encode would have written, so there is one encoding of each
// message and no padding to smuggle in. No I/O, no allocation beyond the message itself.
#ifndef SOMA_CONTROL_MESSAGES_H_
#define SOMA_CONTROL_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"

namespace soma::control {

// Every packet has exactly this size, in both directions.
inline constexpr std::size_t kMessageBytes = 256;
using Packet = std::array<std::uint8_t, kMessageBytes>;

// "SOMC", little-endian, then the version. A peer of another version is refused, never guessed at.
inline constexpr std::uint32_t kMagic = 0x434d4f53;
inline constexpr std::uint16_t kVersion = 1;

// At most this many descriptors come with one packet; more is a protocol error.
inline constexpr std::size_t kDescriptorsMax = 8;

enum class Verb : std::uint16_t {
  kHello = 1,     // what is this launcher: see Reply::launcher
  kAllocate = 2,  // keep `count` slots of this disk size ready, so that Start need not make one
  kStart = 3,     // start a sandbox; the reply carries its descriptors
  kFreeze = 4,    // stop every process of the sandbox where it stands (cgroup v2 freezer)
  kThaw = 5,
  kKill = 6,       // kill every process, answered when none is left; the record stays until kReap
  kReap = 7,       // forget a sandbox that has ended; its id may be used again
  kRenew = 8,      // the lease ends `lease_seconds` from now
  kAttach = 9,     // a new server takes over: the reply carries what kStart's did; one at a time
  kList = 10,      // the first sandbox whose id sorts after `sandbox`; kNotFound at the end
  kSnapshot = 11,  // answers kUnimplemented until the launcher can
  kStatus = 12,
  kSockets = 13,  // the listening sockets that the launcher holds for the server
  kEvent = 14,    // only as a reply, from a monitor: the state has changed
};
inline constexpr std::uint16_t kVerbLast = static_cast<std::uint16_t>(Verb::kEvent);

// What stands around the sandbox; the others (none, process, gvisor, confidential) do not go
// through a launcher in this version.
enum class Level : std::uint8_t { kContainer = 1, kEmulated = 2, kMicrovm = 3 };
enum class TaskProfile : std::uint8_t { kStrict = 1, kRooted = 2 };

// A lower-case name that is safe as one path component: [a-z0-9] first, then [a-z0-9._-]. Longer or
// other text does not decode. The empty name means "none".
template <std::size_t kSizeMax>
class Name {
 public:
  Name() = default;
  static Result<Name> Create(std::string_view text);

  std::string_view text() const { return {bytes_.data(), size_}; }
  bool empty() const { return size_ == 0; }
  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name& a, const Name& b) { return a.text() <=> b.text(); }

 private:
  std::array<char, kSizeMax> bytes_{};
  std::size_t size_ = 0;
};
using SandboxId = Name<32>;
using TemplateId = Name<64>;

// Proves to a monitor that a server is the one that started the sandbox, or its successor, which
// finds it in its own state. Compare with SameToken only.
using Token = std::array<std::uint8_t, 32>;
// Takes the same time wherever the difference is.
bool SameToken(const Token& a, const Token& b);

// Zero is not "unlimited"; every limit is a number in its bounds or the message does not decode.
struct Limits {
  std::uint64_t memory_bytes = 512ULL << 20;
  std::uint64_t disk_bytes = 512ULL << 20;  // of what the sandbox writes; the template is free
  std::uint64_t inodes = 65536;
  std::uint32_t pids = 512;
  std::uint32_t cpu_millis = 1000;  // thousandths of one CPU

  friend bool operator==(const Limits&, const Limits&) = default;
};
inline constexpr std::uint64_t kMemoryBytesMin = 16ULL << 20;
inline constexpr std::uint64_t kMemoryBytesMax = 1ULL << 40;
inline constexpr std::uint64_t kDiskBytesMin = 16ULL << 20;
inline constexpr std::uint64_t kDiskBytesMax = 1ULL << 40;
inline constexpr std::uint64_t kInodesMin = 64;
inline constexpr std::uint64_t kInodesMax = 1ULL << 28;
inline constexpr std::uint32_t kPidsMin = 4;
inline constexpr std::uint32_t kPidsMax = 1U << 20;
inline constexpr std::uint32_t kCpuMillisMin = 10;
inline constexpr std::uint32_t kCpuMillisMax = 1'024'000;
inline constexpr std::uint32_t kLeaseSecondsMax = 31U * 24 * 3600;
inline constexpr std::uint32_t kAllocateMax = 64;

// One shape for every verb. Fields that a verb does not use have their zero value, on the wire too;
// the table `UsesField` in messages.cc says which. Level and profile are meaningful in kStart only.
struct Request {
  Verb verb = Verb::kHello;
  std::uint32_t sequence = 0;  // chosen by the sender, echoed; never 0
  SandboxId sandbox;
  TemplateId template_id;                      // kStart
  Level level = Level::kContainer;             // kStart
  TaskProfile profile = TaskProfile::kRooted;  // kStart
  Limits limits;                               // kStart; disk_bytes and inodes in kAllocate
  std::uint32_t lease_seconds = 0;             // kStart, kRenew: 1 to kLeaseSecondsMax
  std::uint32_t count = 0;                     // kAllocate: 0 to kAllocateMax
  // kStart, kAttach. All zero in kStart: the sandbox belongs to the connection that the reply hands
  // out. It ends when that is closed, and nobody can attach.
  Token token{};

  friend bool operator==(const Request&, const Request&) = default;
};

enum class SandboxState : std::uint8_t {
  kNone = 0,      // the reply is not about a sandbox
  kStarting = 1,  // walls are being built
  kRunning = 2,
  kFrozen = 3,
  kExited = 4,   // ended by itself: exit_code or exit_signal say how
  kKilled = 5,   // ended by kKill
  kExpired = 6,  // ended by its lease
  kLost = 7,     // its monitor died without a word; everything of it has been removed
};

// What a descriptor beside a reply is.
enum class DescriptorKind : std::uint8_t {
  kWire = 1,        // SOCK_STREAM: the host's end of the guest's cable
  kMonitor = 2,     // SOCK_SEQPACKET to the monitor, attached; its end of file: the monitor is gone
  kListenHttp = 3,  // kSockets: a listening TCP socket for the server's faces
  kQmp = 4,         // levels emulated and microvm: the monitor protocol of the virtual machine
  // walls/launch.h, CaptureSockets: every TCP connect of the sandbox arrives at the listeners, its
  // name queries at the other two.
  kCaptureTcp4 = 5,
  kCaptureTcp6 = 6,
  kCaptureDnsUdp = 7,
  kCaptureDnsTcp = 8,
};

struct SandboxStatus {
  SandboxId sandbox;
  SandboxState state = SandboxState::kNone;
  Level level = Level::kContainer;
  std::uint32_t lease_remaining_ms = 0;
  std::uint8_t exit_code = 0;    // kExited: pid 1's exit code
  std::uint8_t exit_signal = 0;  // kExited: or the signal that ended it; 0 for none
  // How often its cgroup's limits were hit, known once it is over: processes killed for memory,
  // processes that were not started. Stays 0 in the regime without cgroups.
  std::uint32_t memory_kills = 0;
  std::uint32_t refused_forks = 0;

  friend bool operator==(const SandboxStatus&, const SandboxStatus&) = default;
};

enum class Regime : std::uint8_t { kSystem = 1, kPrivateRoot = 2, kRootless = 3 };

struct LauncherInfo {
  Regime regime = Regime::kSystem;
  std::uint8_t levels = 0;  // bit (1 << Level) for each level that Start can build here
  std::uint32_t sandboxes = 0;
  std::uint32_t sandboxes_max = 0;
  std::uint32_t epoch = 0;  // another one after each restart of the worker

  friend bool operator==(const LauncherInfo&, const LauncherInfo&) = default;
};

// What a sandbox takes, as its cgroups say; all zero where there are none.
struct SandboxUsage {
  std::uint64_t memory_bytes = 0;  // without memory_cache_bytes
  std::uint64_t memory_cache_bytes = 0;
  std::uint64_t cpu_microseconds = 0;  // since its start

  friend bool operator==(const SandboxUsage&, const SandboxUsage&) = default;
};

inline constexpr std::size_t kDetailBytesMax = 120;

struct Reply {
  Verb verb = Verb::kHello;
  std::uint32_t sequence = 0;
  bool ok = true;
  Errc code = Errc::kInternal;  // only when not ok
  std::string detail;  // only when not ok: one line, cut to kDetailBytesMax, printable ASCII
  SandboxStatus status;
  LauncherInfo launcher;  // kHello
  SandboxUsage usage;     // kStatus, from the launcher
  // Descriptors in the order in which SCM_RIGHTS carries them; `descriptor_count` are valid.
  std::array<DescriptorKind, kDescriptorsMax> descriptors{};
  std::uint8_t descriptor_count = 0;

  friend bool operator==(const Reply&, const Reply&) = default;
};

// Request and Reply that break their own bounds (a sequence of 0, a limit out of range, too long a
// lease) do not encode: kOutOfRange. A reply's detail is cut and made printable instead.
Result<Packet> Encode(const Request& request);
Packet Encode(const Reply& reply);

// kInvalidArgument for everything that Encode could not have written.
Result<Request> DecodeRequest(ByteView packet);
Result<Reply> DecodeReply(ByteView packet);

// A failed reply to `request` that carries `error`.
Reply Refusal(const Request& request, const Error& error);
// A good reply to `request`, without a status.
Reply Accepted(const Request& request);

std::string_view VerbName(Verb verb);
std::string_view LevelName(Level level);
std::string_view StateName(SandboxState state);
std::string_view TaskProfileName(TaskProfile profile);

// True for the states after which no process of the sandbox exists.
constexpr bool IsOver(SandboxState state) { return state >= SandboxState::kExited; }

template <std::size_t kSizeMax>
Result<Name<kSizeMax>> Name<kSizeMax>::Create(std::string_view text) {
  if (text.size() > kSizeMax) return Fail(Errc::kOutOfRange, "a name is too long");
  Name name;
  for (const char c : text) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool joiner = c == '.' || c == '_' || c == '-';
    if (!alphanumeric && (!joiner || name.size_ == 0)) {
      return Fail(Errc::kInvalidArgument, "a name is [a-z0-9] first, then [a-z0-9._-]");
    }
    name.bytes_[name.size_++] = c;
  }
  return name;
}

}  // namespace soma::control

#endif  // SOMA_CONTROL_MESSAGES_H_
