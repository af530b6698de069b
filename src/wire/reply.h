// SPDX-License-Identifier: Apache-2.0
// The replies on a channel, its data, and the messages without a channel. wire/message.h explains
// how they are used and encodes them.
#ifndef SOMA_WIRE_REPLY_H_
#define SOMA_WIRE_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/request.h"

namespace soma::wire {

// ---- Replies ----

struct Ok {};
struct Failed {
  Errc code = Errc::kInternal;
  std::int32_t errno_value = 0;  // Linux numbers; 0 = none
  std::string message;
};
struct Started {
  std::uint32_t pid = 0;  // as seen inside
  std::string tag;
};
struct Exit {
  std::int32_t code = 0;    // -1 when a signal ended it
  std::uint8_t signal = 0;  // 0 = it ended by itself
  bool timed_out = false;
  std::string status;  // "exit status 1", "signal: killed"
};

enum class EntryType : std::uint8_t { kUnspecified = 0, kFile = 1, kDirectory = 2, kOther = 3 };

// A symlink has the type, mode and size of what it leads to; `symlink_target` is the resolved path,
// or the link's own path if it leads nowhere (then kUnspecified).
struct EntryInfo {
  std::string name;
  std::string path;  // absolute; in listings below the path that was asked for
  EntryType type = EntryType::kUnspecified;
  bool is_symlink = false;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;  // st_mode
  std::string owner;       // a name, or the number in text
  std::string group;
  std::int64_t modified_ns = 0;  // since 1970
  std::string symlink_target;
  std::vector<KeyValue> metadata;  // of user.e2b.*, without that prefix
  friend bool operator==(const EntryInfo&, const EntryInfo&) = default;
};
struct Entry {
  EntryInfo info;
};
struct Opened {
  EntryInfo info;  // ReadFile: of the file; else empty
};
struct Stats {
  std::uint32_t cpu_count = 0;
  std::uint64_t cpu_used_us = 0;  // since start
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  std::uint64_t memory_cache_bytes = 0;
  std::uint64_t disk_total_bytes = 0;
  std::uint64_t disk_used_bytes = 0;
  std::uint32_t tasks_running = 0;
  std::uint64_t uptime_ms = 0;
};
struct DatagramReply {
  Bytes bytes;
};

// ---- Data of a channel ----

enum class DataKind : std::uint8_t { kBytes = 1, kStdout = 2, kStderr = 3, kPty = 4, kRecords = 5 };

// `offset` counts the bytes of this direction of the channel, whatever their kind. The sender stays
// below the receiver's last Ack plus the window (wire/session.h).
struct Data {
  DataKind kind = DataKind::kBytes;
  std::uint64_t offset = 0;
  Bytes bytes;  // 1 to kDataMax
};
struct Ack {
  std::uint64_t consumed = 0;  // bytes that the receiver has passed on
};
// Nobody read, so the task's ring dropped its oldest output at this place.
struct Cut {
  std::uint64_t lost_bytes = 0;
};
// No more Data from this side.
struct End {};
// The channel is over at once.
struct Reset {
  Errc code = Errc::kCancelled;
  std::string message;
};

// ---- Without a channel ----

// The guest's first message of a fresh epoch.
struct Identity {
  std::uint32_t protocol = 1;
  std::string agent;           // "soma-guest 0.1.0"
  std::string kernel_release;  // uname -r
  std::string machine;         // uname -m
  std::uint32_t pid = 0;       // of the agent, as it sees itself
  std::uint32_t tasks_running = 0;
  std::vector<std::string> features;  // optional parts that this agent offers: "watch", "egress"
};
// Something was refused inside. A report by the guest, not proof.
struct Denied {
  std::uint32_t pid = 0;
  std::string operation;  // "connect", "exec", ...
  std::string target;
  std::string reason;
};

}  // namespace soma::wire

#endif  // SOMA_WIRE_REPLY_H_
