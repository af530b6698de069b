// SPDX-License-Identifier: Apache-2.0
// Log: what a long-lived program tells its operator, as an interface; `main` decides where it goes.
// Not the record: what happened in a sandbox belongs into the journal (audit/recorder.h).
#ifndef SOMA_BASE_LOG_H_
#define SOMA_BASE_LOG_H_

#include <cstdint>
#include <string_view>

namespace soma {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

class Log {
 public:
  virtual ~Log() = default;
  // One line, without its end. Foreign bytes in it must have been made safe (EscapeForTerminal).
  // Never fails, never blocks for long.
  virtual void Write(LogLevel level, std::string_view line) = 0;

  void Info(std::string_view line) { Write(LogLevel::kInfo, line); }
  void Warning(std::string_view line) { Write(LogLevel::kWarning, line); }
  void Error(std::string_view line) { Write(LogLevel::kError, line); }
};

}  // namespace soma

#endif  // SOMA_BASE_LOG_H_
