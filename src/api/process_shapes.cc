// SPDX-License-Identifier: Apache-2.0
#include "api/process_shapes.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/base64.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {
namespace {

using parse::Json;

Json Wrap(std::string_view name, Json value) {
  Json object = Json::MakeObject();
  object.Set(name, std::move(value));
  return object;
}

Json DataShape(std::string_view kind, ByteView bytes) {
  Json data = Wrap(kind, Json(parse::Base64Encode(bytes)));
  return Wrap("event", Wrap("data", std::move(data)));
}

Json EndShape(const wire::Exit& exit) {
  Json end = Json::MakeObject();
  end.Set("exitCode", Json(std::int64_t{exit.code}));
  end.Set("exited", Json(exit.signal == 0));
  end.Set("status", Json(exit.status));
  if (exit.code != 0) end.Set("error", Json(exit.status));
  return Wrap("event", Wrap("end", std::move(end)));
}

// Output that nobody read in time was dropped: the reader must see that, in its place.
Json CutShape(const wire::Cut& cut) {
  const std::string notice =
      StrCat("\n[soma: ", cut.lost_bytes, " bytes of earlier output were dropped]\n");
  return DataShape("stderr", AsBytes(notice));
}

std::string_view KindName(wire::DataKind kind) {
  switch (kind) {
    case wire::DataKind::kStderr:
      return "stderr";
    case wire::DataKind::kPty:
      return "pty";
    default:
      return "stdout";
  }
}

}  // namespace

Result<wire::TerminalSize> ReadPtySize(const Json& message) {
  const Json* pty = message.Find("pty");
  const Json* size = pty == nullptr ? nullptr : pty->Find("size");
  if (size == nullptr) return Fail(Errc::kInvalidArgument, "\"pty.size\" is missing");
  SOMA_ASSIGN(const auto columns, parse::OptionalInt(*size, "cols"));
  SOMA_ASSIGN(const auto rows, parse::OptionalInt(*size, "rows"));
  // A window size is two 16-bit numbers (tty_ioctl(4), TIOCSWINSZ).
  const auto fits = [](std::int64_t value) { return value >= 0 && value <= UINT16_MAX; };
  if (!fits(columns.value_or(0)) || !fits(rows.value_or(0))) {
    return Fail(Errc::kInvalidArgument, "\"pty.size\" is out of range");
  }
  return wire::TerminalSize{.columns = static_cast<std::uint16_t>(columns.value_or(0)),
                            .rows = static_cast<std::uint16_t>(rows.value_or(0))};
}

Result<wire::Start> ReadStart(const Json& message) {
  const Json* process = message.Find("process");
  if (process == nullptr || !process->is_object()) {
    return Fail(Errc::kInvalidArgument, "\"process\" is missing");
  }
  wire::Start start;
  start.profile = "rooted";
  SOMA_ASSIGN(const auto command, parse::OptionalString(*process, "cmd"));
  if (!command || command->empty()) return Fail(Errc::kInvalidArgument, "\"cmd\" is missing");
  start.arguments.push_back(*command);
  SOMA_ASSIGN(auto arguments, parse::OptionalStringList(*process, "args"));
  for (std::string& argument : arguments) start.arguments.push_back(std::move(argument));
  SOMA_ASSIGN(auto environment, parse::OptionalStringMap(*process, "envs"));
  for (auto& [name, value] : environment) {
    start.environment.push_back({.key = std::move(name), .value = std::move(value)});
  }
  SOMA_ASSIGN(const auto workdir, parse::OptionalString(*process, "cwd"));
  start.workdir = workdir.value_or("");
  SOMA_ASSIGN(const auto tag, parse::OptionalString(message, "tag"));
  start.tag = tag.value_or("");
  const Json* pty = message.Find("pty");
  start.has_terminal = pty != nullptr && !pty->is_null();
  if (start.has_terminal) {
    SOMA_ASSIGN(start.terminal, ReadPtySize(message));
  }
  SOMA_ASSIGN(const auto has_stdin, parse::OptionalBool(message, "stdin"));
  // Absent means true (e2b.md section 3.3): programs older than the flag rely on it.
  start.has_stdin = has_stdin.value_or(true);
  return start;
}

Result<wire::TaskSelector> ReadSelector(const Json& message) {
  const Json* process = message.Find("process");
  if (process == nullptr) return Fail(Errc::kInvalidArgument, "\"process\" is missing");
  SOMA_ASSIGN(const auto pid, parse::OptionalInt(*process, "pid"));
  SOMA_ASSIGN(const auto tag, parse::OptionalString(*process, "tag"));
  wire::TaskSelector selector;
  if (pid) {
    if (*pid <= 0 || *pid > UINT32_MAX) {
      return Fail(Errc::kNotFound, StrCat("process with pid ", *pid, " not found"));
    }
    selector.pid = static_cast<std::uint32_t>(*pid);
  } else if (tag && !tag->empty()) {
    selector.tag = *tag;
  } else {
    return Fail(Errc::kInvalidArgument, "\"process\" names neither a pid nor a tag");
  }
  return selector;
}

Result<std::uint8_t> ReadSignal(const Json& message) {
  const Json* signal = message.Find("signal");
  const std::string* name = signal == nullptr ? nullptr : signal->AsString();
  const std::int64_t number = signal == nullptr ? 0 : signal->AsInt().value_or(0);
  if ((name != nullptr && *name == "SIGNAL_SIGTERM") || number == SIGTERM) return SIGTERM;
  if ((name != nullptr && *name == "SIGNAL_SIGKILL") || number == SIGKILL) return SIGKILL;
  return Fail(Errc::kUnimplemented, "only SIGTERM and SIGKILL can be sent");
}

Result<Bytes> ReadInput(const Json& message) {
  const Json* input = message.Find("input");
  if (input == nullptr) return Fail(Errc::kInvalidArgument, "\"input\" is missing");
  SOMA_ASSIGN(auto text, parse::OptionalString(*input, "stdin"));
  if (!text) {
    SOMA_ASSIGN(text, parse::OptionalString(*input, "pty"));
  }
  auto bytes = parse::Base64Decode(text.value_or(""));
  if (!bytes) return Fail(Errc::kInvalidArgument, "\"input\" is not base64");
  return *std::move(bytes);
}

std::optional<Json> EventShape(const wire::Message& message) {
  if (const auto* started = std::get_if<wire::Started>(&message)) {
    return Wrap("event", Wrap("start", Wrap("pid", Json(std::int64_t{started->pid}))));
  }
  if (const auto* data = std::get_if<wire::Data>(&message)) {
    return DataShape(KindName(data->kind), data->bytes);
  }
  if (const auto* cut = std::get_if<wire::Cut>(&message)) return CutShape(*cut);
  if (const auto* exit = std::get_if<wire::Exit>(&message)) return EndShape(*exit);
  return std::nullopt;
}

Json KeepaliveShape() { return Wrap("event", Wrap("keepalive", Json::MakeObject())); }

Json TaskShape(const wire::TaskInfo& task) {
  Json config = Json::MakeObject();
  Json arguments = Json::MakeArray();
  for (std::size_t i = 1; i < task.arguments.size(); ++i) arguments.Append(Json(task.arguments[i]));
  config.Set("cmd", Json(task.arguments.empty() ? std::string() : task.arguments[0]));
  config.Set("args", std::move(arguments));
  Json environment = Json::MakeObject();
  for (const auto& [name, value] : task.environment) environment.Set(name, Json(value));
  config.Set("envs", std::move(environment));
  if (!task.workdir.empty()) config.Set("cwd", Json(task.workdir));
  Json shape = Json::MakeObject();
  shape.Set("config", std::move(config));
  shape.Set("pid", Json(std::int64_t{task.pid}));
  if (!task.tag.empty()) shape.Set("tag", Json(task.tag));
  return shape;
}

}  // namespace soma::api
