// SPDX-License-Identifier: Apache-2.0
// Error: why an operation failed. Callers branch on `code()`, people read `message()`.
//
// A value: copy, move, compare by code. Allocates for its text, so it must not be made between fork
// and exec; there a {step, errno} pair goes up a pipe instead (sys/spawn.h).
#ifndef SOMA_BASE_ERROR_H_
#define SOMA_BASE_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace soma {

// What a caller can do about an error. Deliberately few: a code that no caller branches on is not
// added.
enum class Errc : std::uint8_t {
  kInvalidArgument,     // the input is wrong; retrying cannot help
  kNotFound,            // the named thing does not exist (or belongs to another tenant)
  kAlreadyExists,       // the named thing exists and should not
  kPermissionDenied,    // refused by policy or by the kernel
  kUnauthenticated,     // the caller did not prove who it is
  kResourceExhausted,   // a limit, quota or budget is used up
  kFailedPrecondition,  // the state does not allow it now
  kUnavailable,         // a peer is gone or not up yet; a retry may help
  kDeadlineExceeded,    // the time allowed is over
  kCancelled,           // the caller gave up
  kUnimplemented,       // this machine or level cannot do it
  kDataLoss,            // stored or transmitted bytes are damaged
  kOutOfRange,          // a number or length beyond its bound
  kInternal,            // our own fault, or a kernel answer that nothing explains
};

std::string_view ErrcName(Errc code);

class Error {
 public:
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  // From a failed system call: `what` names the call and its object, the text of `errno_value` is
  // appended. The code is derived: ENOENT -> kNotFound, EPERM/EACCES -> kPermissionDenied, ...
  static Error FromErrno(int errno_value, std::string_view what);

  Errc code() const { return code_; }
  // The errno of the failed system call; 0 when there was none.
  int errno_value() const { return errno_value_; }
  const std::string& message() const { return message_; }

  // Adds what was being done, outermost first: "mounting /proc: mount: Operation not permitted".
  Error While(std::string_view doing) &&;

  friend bool operator==(const Error& a, const Error& b) { return a.code_ == b.code_; }

 private:
  Errc code_;
  int errno_value_ = 0;
  std::string message_;
};

// The name of an errno ("EPERM"), or "errno N". Never allocates; for reports and for code after
// fork.
std::string_view ErrnoName(int errno_value);

}  // namespace soma

#endif  // SOMA_BASE_ERROR_H_
