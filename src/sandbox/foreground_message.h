// SPDX-License-Identifier: Apache-2.0
// What the two halves of a foreground run say to each other (sandbox/foreground_run.h), one
// SOCK_SEQPACKET packet each. The attendant is half trusted: it reads the guest's bytes, so what it
// says is bounded, and decoding is total. Plain values, no I/O.
#ifndef SOMA_SANDBOX_FOREGROUND_MESSAGE_H_
#define SOMA_SANDBOX_FOREGROUND_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "sandbox/foreground_end.h"

namespace soma::sandbox {

// ---- to the attendant

// A signal has reached the caller.
struct HostSignal {
  std::uint8_t number = 0;
};
// The answer to TaskStarted: the terminal passes every key.
struct TerminalReady {};
// The answer to WantLauncher: with a connected socket, or why there is none.
struct LauncherSocket {
  std::string failure;
};
using ToAttendant = std::variant<HostSignal, TerminalReady, LauncherSocket>;

// ---- to the caller

struct WantLauncher {};
// The command runs, on a terminal of its own.
struct TaskStarted {};
struct RunOver {
  bool ok = false;
  // When ok; hidden and other are the caller's to know.
  ForegroundEnd end;
  // Else.
  Errc code = Errc::kInternal;
  std::string message;
};
using ToCaller = std::variant<WantLauncher, TaskStarted, RefusedConnect, RunOver>;

inline constexpr std::size_t kForegroundMessageMax = std::size_t{16} * 1024;

// Texts beyond their bound are cut.
Bytes Encode(const ToAttendant& message);
Bytes Encode(const ToCaller& message);
// kInvalidArgument for everything that Encode could not have written.
Result<ToAttendant> DecodeToAttendant(ByteView packet);
Result<ToCaller> DecodeToCaller(ByteView packet);

// The workspace's copy goes another way, as packets too: pieces of a tar stream, then one of a
// single byte; no piece is that short. Without that one the copy is not whole.
inline constexpr std::size_t kCopyPieceMax = std::size_t{64} * 1024;
inline constexpr std::size_t kCopyEndSize = 1;

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_FOREGROUND_MESSAGE_H_
