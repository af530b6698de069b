// SPDX-License-Identifier: Apache-2.0
#include "parse/multipart.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::parse {
namespace {

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// The value of `name` in "type; name=value; name=\"quoted\"", with backslash escapes of quotes
// undone. Browsers and undici write quotes inside as %22 instead; both are taken.
std::optional<std::string> Parameter(std::string_view text, std::string_view name) {
  std::size_t at = text.find(';');
  while (at != std::string_view::npos) {
    text.remove_prefix(at + 1);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const bool found = EqualsIgnoringCase(Trim(text.substr(0, equals)), name);
    text.remove_prefix(equals + 1);
    std::string value;
    if (text.starts_with('"')) {
      std::size_t i = 1;
      for (; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '"') ++i;
        value += text[i];
      }
      if (i >= text.size()) return std::nullopt;
      text.remove_prefix(i + 1);
    } else {
      value = Trim(text.substr(0, text.find(';')));
    }
    if (found) return value;
    at = text.find(';');
  }
  return std::nullopt;
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

Result<std::string> MultipartBoundary(std::string_view content_type) {
  const std::string_view type = Trim(content_type.substr(0, content_type.find(';')));
  if (!EqualsIgnoringCase(type, "multipart/form-data")) {
    return Fail(Errc::kInvalidArgument, "the body is not multipart/form-data");
  }
  auto boundary = Parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kBoundarySizeMax) {
    return Fail(Errc::kInvalidArgument, "the multipart body has no valid boundary");
  }
  return *std::move(boundary);
}

// The body begins with the delimiter's dashes; the CRLF put before it makes them all alike.
MultipartReader::MultipartReader(std::string_view boundary)
    : delimiter_(StrCat("\r\n--", boundary)), input_("\r\n") {}

void MultipartReader::Feed(std::string_view chunk) {
  if (state_ == State::kDone || state_ == State::kFailed) return;
  input_ += chunk;
}

std::optional<MultipartEvent> MultipartReader::Stop(std::string why) {
  error_ = std::move(why);
  state_ = State::kFailed;
  input_.clear();
  return std::nullopt;
}

std::optional<MultipartEvent> MultipartReader::Next() {
  std::optional<MultipartEvent> event;
  bool moved = true;
  while (moved && !event) {
    switch (state_) {
      case State::kPreamble:
        moved = StepPreamble();
        break;
      case State::kAfterDelimiter:
        moved = StepAfterDelimiter();
        break;
      case State::kHeader:
        moved = StepHeader(event);
        break;
      case State::kData:
        moved = StepData(event);
        break;
      case State::kDone:
      case State::kFailed:
        input_.clear();
        return std::nullopt;
    }
  }
  return event;
}

bool MultipartReader::StepPreamble() {
  const std::size_t at = input_.find(delimiter_);
  if (at != std::string::npos) {
    input_.erase(0, at + delimiter_.size());
    state_ = State::kAfterDelimiter;
    return true;
  }
  if (input_.size() > delimiter_.size()) input_.erase(0, input_.size() - delimiter_.size());
  return false;
}

bool MultipartReader::StepAfterDelimiter() {
  if (input_.size() < 2) return false;
  if (input_.starts_with("--")) {
    state_ = State::kDone;
    return true;
  }
  // Padding may stand between the boundary and the end of its line.
  const std::size_t end = input_.find("\r\n");
  if (end == std::string::npos) {
    if (input_.size() > kPartHeaderSizeMax) Stop("a multipart delimiter does not end");
    return false;
  }
  if (!Trim(std::string_view(input_).substr(0, end)).empty()) {
    Stop("bytes follow a multipart delimiter");
    return false;
  }
  // The CRLF stays: a part without headers has its empty line right here.
  input_.erase(0, end);
  state_ = State::kHeader;
  return true;
}

bool MultipartReader::StepHeader(std::optional<MultipartEvent>& event) {
  const std::size_t end = input_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (input_.size() > kPartHeaderSizeMax) Stop("a part's header is too long");
    return false;
  }
  if (end > kPartHeaderSizeMax) {
    Stop("a part's header is too long");
    return false;
  }
  MultipartEvent part{.kind = MultipartEvent::Kind::kPart, .name = {}, .filename = {}, .data = {}};
  for (std::string_view line : Split(std::string_view(input_).substr(0, end), '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!EqualsIgnoringCase(line.substr(0, colon), "content-disposition")) continue;
    part.name = Parameter(line, "name").value_or("");
    part.filename = Parameter(line, "filename").value_or("");
    ReplaceAll(part.filename, "%22", "\"");
  }
  input_.erase(0, end + 4);
  state_ = State::kData;
  event = std::move(part);
  return true;
}

bool MultipartReader::StepData(std::optional<MultipartEvent>& event) {
  const std::size_t at = input_.find(delimiter_);
  if (at == 0) {
    input_.erase(0, delimiter_.size());
    state_ = State::kAfterDelimiter;
    event = MultipartEvent{
        .kind = MultipartEvent::Kind::kPartEnd, .name = {}, .filename = {}, .data = {}};
    return true;
  }
  // The end of what is here may be the beginning of a delimiter.
  const std::size_t held = delimiter_.size() - 1;
  const std::size_t size =
      at != std::string::npos ? at : input_.size() - std::min(input_.size(), held);
  if (size == 0) return false;
  event = MultipartEvent{.kind = MultipartEvent::Kind::kData,
                         .name = {},
                         .filename = {},
                         .data = input_.substr(0, size)};
  input_.erase(0, size);
  return true;
}

}  // namespace soma::parse
