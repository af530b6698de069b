// SPDX-License-Identifier: Apache-2.0
// The requests that open a channel, and what they share: channel ids, limits, KeyValue.
// wire/message.h explains how they are used and encodes them.
#ifndef SOMA_WIRE_REQUEST_H_
#define SOMA_WIRE_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace soma::wire {

using ChannelId = std::uint32_t;
inline constexpr ChannelId kControlChannel = 0;
inline constexpr ChannelId kGuestChannelBit = 0x80000000;

// Limits; in bytes where not said otherwise.
inline constexpr std::size_t kPathMax = 4096;  // PATH_MAX, linux/limits.h
inline constexpr std::size_t kNameMax = 256;   // NAME_MAX 255 (linux/limits.h); user names, tags
inline constexpr std::size_t kTextMax = 1024;  // messages for people
inline constexpr std::size_t kArgumentMax =
    std::size_t{128} * 1024;  // MAX_ARG_STRLEN, linux/binfmts.h
inline constexpr std::size_t kArgumentsCountMax = 1024;
inline constexpr std::size_t kEnvironmentCountMax = 1024;
inline constexpr std::size_t kMetadataCountMax = 64;
inline constexpr std::size_t kMetadataMax = 4096;  // one value; E2B allows 4096 in total
inline constexpr std::size_t kDataMax = std::size_t{16} * 1000;  // one Data fits into one frame
inline constexpr std::size_t kDatagramMax = 4096;

struct KeyValue {
  std::string key;
  std::string value;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

// ---- Requests of the host ----

// Settings for all tasks; sent once after creation, again to change them. Replaces all of them.
struct Init {
  std::vector<KeyValue> environment;  // below the request's own, above PATH HOME USER LOGNAME
  std::string default_user;           // "" = keep
  std::string default_workdir;        // "" = the user's home
  std::string hostname;               // "" = keep
  std::uint64_t wall_time_us = 0;     // a virtual machine sets its clock to this; 0 = leave it
};

struct TaskSelector {
  std::uint32_t pid = 0;  // as seen inside; 0 = by tag
  std::string tag;
  friend bool operator==(const TaskSelector&, const TaskSelector&) = default;
};

struct TerminalSize {
  std::uint16_t columns = 0;
  std::uint16_t rows = 0;
  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

struct Start {
  std::string profile;                 // name of a task profile: "strict", "rooted"
  std::vector<std::string> arguments;  // [0] is looked up in the PATH of the task's environment
  std::vector<KeyValue> environment;   // above everything else
  std::string workdir;                 // "" = default; relative to the user's home
  std::string user;                    // "" = default user
  std::string tag;
  bool has_terminal = false;
  TerminalSize terminal;
  bool has_stdin = false;        // else stdin is /dev/null
  std::uint32_t timeout_ms = 0;  // 0 = none; at its end SIGKILL
};

// Output from the beginning of the task (as far as its ring holds it), then live.
struct Attach {
  TaskSelector task;
};
struct ListTasks {};
struct Signal {
  TaskSelector task;
  std::uint8_t number = 0;
};
struct Resize {
  TaskSelector task;
  TerminalSize size;
};
// Answered when the task's pipe or terminal has taken all of it. Also for terminals.
struct Stdin {
  TaskSelector task;
  Bytes bytes;  // at most kDataMax
};
struct CloseStdin {
  TaskSelector task;
};

// File operations. `user` names who acts ("" = default user): `~` and relative paths start at that
// user's home, and what is created belongs to that user. The agent itself acts as root.
struct Stat {
  std::string user;
  std::string path;
};
struct ListDir {
  std::string user;
  std::string path;
  std::uint32_t depth = 1;  // 0 counts as 1
};
struct MakeDir {
  std::string user;
  std::string path;
};
struct Move {
  std::string user;
  std::string source;
  std::string destination;
};
struct Remove {
  std::string user;
  std::string path;
};
struct ReadFile {
  std::string user;
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t length = UINT64_MAX;  // bytes at most; UINT64_MAX = to the end
};
struct WriteFile {
  std::string user;
  std::string path;
  std::uint32_t mode = 0644;       // of a new file
  bool atomic = false;             // write beside and rename at the end; else truncate and write
  std::vector<KeyValue> metadata;  // replaces all user.e2b.* attributes
};
struct Watch {
  std::string user;
  std::string path;
  bool recursive = false;
};
struct GetStats {};
// Connects inside to this port of 127.0.0.1, else of ::1.
struct Dial {
  std::uint16_t port = 0;
};

// ---- Requests of the guest ----

// A connection that was caught inside wants out.
struct Open {
  std::string host;  // a name, or an address in text form
  std::uint16_t port = 0;
  std::uint32_t pid = 0;  // who connects, if known; says the guest
};
// A query (DNS) wants out.
struct Datagram {
  std::uint16_t port = 53;
  Bytes bytes;
};

}  // namespace soma::wire

#endif  // SOMA_WIRE_REQUEST_H_
