// SPDX-License-Identifier: Apache-2.0
// Runtime: one isolation level that can hold sandboxes. One interface for all levels, and no level
// knows another.
//
// A sandbox runs by itself: a Runtime object only holds a connection to it. When the server dies
// the sandbox goes on until its lease ends, and the next server finds it by List and Attach.
//
// All calls belong to the loop's thread. What a sandbox says is untrusted. What every level has in
// common is tested by runtime_conformance_test.cc.
#ifndef SOMA_RUNTIME_RUNTIME_H_
#define SOMA_RUNTIME_RUNTIME_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aio/task.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::runtime {

struct Limits {
  std::uint64_t memory_bytes_max = std::uint64_t{512} << 20;
  std::uint32_t cpu_percent_max = 200;  // 100 is one CPU
  std::uint32_t processes_max = 512;
  std::uint64_t disk_bytes_max = std::uint64_t{1} << 30;
  std::uint64_t inodes_max = 200'000;
};

enum class Profile : std::uint8_t { kStrict, kRooted };

// Proves to whoever guards a sandbox that a server may have it: the one that started it, or its
// successor, which finds the token in its own state.
using GuardToken = std::array<std::uint8_t, 32>;

struct StartRequest {
  std::string sandbox_id;  // [a-z0-9]{1,32}; unique among living sandboxes
  std::string template_id;
  Profile profile = Profile::kRooted;
  Limits limits;
  // All zero: the sandbox ends with the handle that Start gives, and no server can take it over.
  GuardToken token{};
  // The sandbox is killed when its lease ends, even if no server lives then.
  std::chrono::seconds lease{60};
};

// The sockets at which everything that wants out of a sandbox arrives (design: egress); empty where
// the guest agent holds them itself and asks over the wire.
struct CaptureSockets {
  Fd tcp4;
  Fd tcp6;
  Fd dns_udp;
  Fd dns_tcp;
};

// How a sandbox ended.
struct Death {
  std::string reason;  // "killed", "lease ended", "pid 1 exited with 1", …: for people
};

// What a sandbox takes, measured from outside.
struct Stats {
  std::uint64_t memory_bytes = 0;  // without memory_cache_bytes
  std::uint64_t memory_cache_bytes = 0;
  std::uint64_t cpu_microseconds = 0;  // since its start
};

struct Capabilities {
  bool freeze = false;
  bool snapshot = false;
  // The wire may lose and replay bytes when it is opened again (virtio-serial).
  bool wire_is_lossy = false;
  // What this machine lacks for the full promise of the level, in words ("no inode quota").
  std::vector<std::string> lacks;
};

// How often a sandbox's limits were hit, as far as its level counts that.
struct LimitHits {
  std::uint64_t memory_kills = 0;   // processes killed because the memory was used up
  std::uint64_t refused_forks = 0;  // processes that were not started
};

class SandboxHandle {
 public:
  virtual ~SandboxHandle() = default;  // lets go; the sandbox lives on

  // The host's end of the wire, connected, non-blocking. Once; a second call is
  // kFailedPrecondition.
  virtual Result<Fd> TakeWire() = 0;
  // Once; while nobody accepts at them nothing gets out.
  virtual CaptureSockets TakeCaptures() = 0;
  // Ends when the sandbox is gone; kDeadlineExceeded when it still lives after `timeout`.
  virtual aio::Task<Death> WaitDeath(std::chrono::nanoseconds timeout) = 0;
  // The lease ends this long from now. Shortening is allowed.
  virtual aio::Task<void> RenewLease(std::chrono::seconds from_now) = 0;
  virtual aio::Task<void> Freeze() = 0;
  virtual aio::Task<void> Thaw() = 0;
  // `name` becomes usable as a template id. kUnimplemented where Capabilities says so.
  virtual aio::Task<void> Snapshot(std::string name) = 0;
  // Kills everything inside and returns when no process of it is left and List names it no more.
  // What it occupied (disk, mounts, cgroup, ids) is cleaned up after that, whoever dies meanwhile,
  // and used for nothing else before. Idempotent.
  virtual aio::Task<void> Stop() = 0;
  // kUnimplemented where only the guest knows.
  virtual aio::Task<Stats> GetStats() = 0;
  // After Stop.
  virtual LimitHits Hits() const { return {}; }
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // "container", "emulated", …
  virtual std::string_view level() const = 0;
  virtual Capabilities capabilities() const = 0;
  // Returns when pid 1 inside runs and the wire is connected. kNotFound: no such template;
  // kAlreadyExists; kResourceExhausted; kUnavailable: nobody there to start it.
  virtual aio::Task<std::unique_ptr<SandboxHandle>> Start(StartRequest request) = 0;
  // Ids of the living sandboxes of this level, also those that another server started.
  virtual aio::Task<std::vector<std::string>> List() = 0;
  // Takes over a living sandbox whose holder is gone. kFailedPrecondition while one still holds it,
  // kUnauthenticated for another token, kNotFound.
  virtual aio::Task<std::unique_ptr<SandboxHandle>> Attach(std::string sandbox_id,
                                                           GuardToken token) = 0;
  // Ends a living sandbox that nobody holds a token for.
  virtual aio::Task<void> StopUnknown(std::string sandbox_id) = 0;
};

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_RUNTIME_H_
