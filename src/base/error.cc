// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace soma {
namespace {

Errc ErrcFromErrno(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
      return Errc::kNotFound;
    case EEXIST:
      return Errc::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return Errc::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return Errc::kResourceExhausted;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return Errc::kInvalidArgument;
    case EBUSY:
    case ENOTEMPTY:
    case EXDEV:
      return Errc::kFailedPrecondition;
    case ENOSYS:
    case EOPNOTSUPP:
      return Errc::kUnimplemented;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Errc::kUnavailable;
    case ETIMEDOUT:
      return Errc::kDeadlineExceeded;
    case ECANCELED:
    case EINTR:
      return Errc::kCancelled;
    case ERANGE:
    case EOVERFLOW:
    case E2BIG:
    case EFBIG:
      return Errc::kOutOfRange;
    default:
      return Errc::kInternal;
  }
}

}  // namespace

std::string_view ErrcName(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "invalid_argument";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kAlreadyExists:
      return "already_exists";
    case Errc::kPermissionDenied:
      return "permission_denied";
    case Errc::kUnauthenticated:
      return "unauthenticated";
    case Errc::kResourceExhausted:
      return "resource_exhausted";
    case Errc::kFailedPrecondition:
      return "failed_precondition";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kDeadlineExceeded:
      return "deadline_exceeded";
    case Errc::kCancelled:
      return "canceled";
    case Errc::kUnimplemented:
      return "unimplemented";
    case Errc::kDataLoss:
      return "data_loss";
    case Errc::kOutOfRange:
      return "out_of_range";
    case Errc::kInternal:
      return "internal";
  }
  return "internal";
}

std::string_view ErrnoName(int errno_value) {
  const char* name = strerrorname_np(errno_value);
  return name != nullptr ? name : "unknown errno";
}

Error Error::FromErrno(int errno_value, std::string_view what) {
  const char* description = strerrordesc_np(errno_value);
  std::string message(what);
  message += ": ";
  message += description != nullptr ? description : "unknown error";
  Error error(ErrcFromErrno(errno_value), std::move(message));
  error.errno_value_ = errno_value;
  return error;
}

Error Error::While(std::string_view doing) && {
  std::string message(doing);
  message += ": ";
  message += message_;
  message_ = std::move(message);
  return std::move(*this);
}

}  // namespace soma
