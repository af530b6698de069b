// SPDX-License-Identifier: Apache-2.0
// Event: one entry of the record. Every program of the house says what happened with this one type.
//
// A plain value. The encoding is canonical JSON (docs/adr/0003-journal.md): fixed key order, empty
// members left out, one spelling for every byte string, so the same event always gives the same
// bytes and `jq` can read it. Texts are foreign bytes: they may hold anything, and the encoding is
// lossless and safe to print (control characters, C1, DEL, bidirectional overrides and invalid
// UTF-8 are escaped, the last as \udcNN like Python's surrogateescape).
//
// Text beyond its bound is cut by the encoder and the event is marked `"cut":true`; a record is
// never refused for being long, since then a long path would hide a refusal.
#ifndef SOMA_AUDIT_EVENT_H_
#define SOMA_AUDIT_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace soma::audit {

// What happened. The spelled names (KindName) are part of the format: add, never rename.
enum class EventKind : std::uint8_t {
  kStart,           // a run or sandbox started: subject = command or template, fields: level, ...
  kEnd,             // it ended: fields: exit, signal, ...
  kPolicyDecision,  // a policy was loaded, merged or applied
  kPolicyChange,    // a stored policy or rule was changed
  kRefusal,         // something inside was refused by a wall: subject = who, object = what
  kEgressDecision,  // a name or address outside was asked for: object = "name:port"
  kKeyChange,       // an API key or tenant was made or revoked
  kApproval,        // a person or approver answered
  kSecretRelease,   // a secret left our hands: object = its id, never its bytes
  kTemplate,        // a template was built, imported or removed
  kServer,          // the server started, stopped, recovered
  kSandbox,         // life of a sandbox beyond start and end: pause, resume, timeout, kill, ...
  kToolCall,        // a tool call was judged
  kJournal,         // the journal about itself: a segment sealed after a crash, ...
};

// Who observed it. What a guest reports is evidence given by the adversary's machine.
enum class Source : std::uint8_t { kHost, kGuest };

enum class Verdict : std::uint8_t { kNone, kAllow, kDeny, kAsk };

// The names as they are written; the inverse gives nullopt-like failure by kInvalidArgument.
std::string_view KindName(EventKind kind);
std::string_view SourceName(Source source);
std::string_view VerdictName(Verdict verdict);

// Bounds in bytes of the unescaped text. PATH_MAX (4096, linux/limits.h) decides object's.
inline constexpr std::size_t kIdBytesMax = 64;
inline constexpr std::size_t kSubjectBytesMax = 512;
inline constexpr std::size_t kObjectBytesMax = 4096;
inline constexpr std::size_t kRuleBytesMax = 512;
inline constexpr std::size_t kRemedyBytesMax = 1024;
inline constexpr std::size_t kFieldsMax = 16;
inline constexpr std::size_t kFieldKeyBytesMax = 32;
inline constexpr std::size_t kFieldValueBytesMax = 1024;

struct Event {
  // Zero means: the writer stamps it with its clock when it is appended.
  WallTime time{};
  EventKind kind = EventKind::kServer;
  Source source = Source::kHost;
  Verdict verdict = Verdict::kNone;
  std::string run;      // id of the run (`soma run`) or of the task; empty if none
  std::string sandbox;  // id of the sandbox; empty if none
  std::string tenant;   // empty on a machine of one user
  std::string subject;  // who or what acted: "python3[231]", a key's id
  std::string object;   // upon what: a path, "example.org:443", a template
  std::string rule;     // the rule that decided, as the policy's reader would look for it
  std::string remedy;   // the smallest change that would allow it
  // Further facts, in this order. A key is [a-z0-9_.]{1,32}; the encoder drops the fields from the
  // first bad key or beyond kFieldsMax on, and marks the event as cut.
  std::vector<std::pair<std::string, std::string>> fields;
  // Set by the decoder when the stored event says that something was cut off.
  bool cut = false;

  friend bool operator==(const Event&, const Event&) = default;
};

// The canonical members without the surrounding braces: `"time":"…","kind":"start",…`. Never fails.
std::string EncodeEvent(const Event& event);

// Reads what EncodeEvent wrote and nothing else: another key order, another spelling of a
// character, an unknown kind, a text beyond its bound are kInvalidArgument. Untrusted input.
Result<Event> DecodeEvent(std::string_view members);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_EVENT_H_
