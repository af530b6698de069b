// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error, and the macros that pass an error upwards.
//
//   Result<Fd> OpenConfig(const Dir& dir) {
//     SOMA_ASSIGN(auto fd, dir.Open(path));            // returns the error, else defines fd
//     SOMA_TRY(CheckOwner(fd));                         // for Result<void>
//     SOMA_TRY_WHILE(Load(fd), "loading the policy");   // adds context on the way up
//     return fd;
//   }
//
// libstdc++ 12 has std::expected without the monadic members; these macros stand in for them. In
// coroutines use the SOMA_CO_ forms. Errors are values: exceptions never leave the room that wraps
// a throwing library.
#ifndef SOMA_BASE_RESULT_H_
#define SOMA_BASE_RESULT_H_

#include <expected>
#include <string>
#include <utility>

#include "base/error.h"

namespace soma {

template <typename T>
using Result = std::expected<T, Error>;

using Status = Result<void>;

inline std::unexpected<Error> Fail(Errc code, std::string message) {
  return std::unexpected(Error(code, std::move(message)));
}

}  // namespace soma

#define SOMA_CONCAT_INNER(a, b) a##b
#define SOMA_CONCAT(a, b) SOMA_CONCAT_INNER(a, b)

#define SOMA_TRY(expression)                                  \
  do {                                                        \
    if (auto soma_status = (expression); !soma_status) {      \
      return std::unexpected(std::move(soma_status).error()); \
    }                                                         \
  } while (false)

#define SOMA_TRY_WHILE(expression, doing)                                  \
  do {                                                                     \
    if (auto soma_status = (expression); !soma_status) {                   \
      return std::unexpected(std::move(soma_status).error().While(doing)); \
    }                                                                      \
  } while (false)

#define SOMA_ASSIGN_INNER(temporary, declaration, expression, return_word) \
  auto temporary = (expression);                                           \
  if (!(temporary)) {                                                      \
    return_word std::unexpected(std::move(temporary).error());             \
  }                                                                        \
  declaration = *std::move(temporary)

#define SOMA_ASSIGN(declaration, expression) \
  SOMA_ASSIGN_INNER(SOMA_CONCAT(soma_result_, __LINE__), declaration, expression, return)

#define SOMA_CO_TRY(expression)                                  \
  do {                                                           \
    if (auto soma_status = (expression); !soma_status) {         \
      co_return std::unexpected(std::move(soma_status).error()); \
    }                                                            \
  } while (false)

#define SOMA_CO_ASSIGN(declaration, expression) \
  SOMA_ASSIGN_INNER(SOMA_CONCAT(soma_result_, __LINE__), declaration, expression, co_return)

#endif  // SOMA_BASE_RESULT_H_
