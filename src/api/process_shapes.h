// SPDX-License-Identifier: Apache-2.0
// E2B's process messages as JSON, to and from the wire's. Pure, untrusted on both sides.
#ifndef SOMA_API_PROCESS_SHAPES_H_
#define SOMA_API_PROCESS_SHAPES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {

Result<wire::Start> ReadStart(const parse::Json& message);
// The member "process" of every call that names one.
Result<wire::TaskSelector> ReadSelector(const parse::Json& message);
// SIGTERM and SIGKILL by name or number; kUnimplemented for others.
Result<std::uint8_t> ReadSignal(const parse::Json& message);
Result<wire::TerminalSize> ReadPtySize(const parse::Json& message);
// The member "input": stdin and pty bytes are one thing here.
Result<Bytes> ReadInput(const parse::Json& message);

// {"event": {…}} of a Start or Connect stream. Nullopt for messages that are no event.
std::optional<parse::Json> EventShape(const wire::Message& message);
parse::Json KeepaliveShape();
parse::Json TaskShape(const wire::TaskInfo& task);

}  // namespace soma::api

#endif  // SOMA_API_PROCESS_SHAPES_H_
