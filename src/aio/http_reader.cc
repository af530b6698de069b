// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aio/http.h"
#include "aio/http_parser.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"

namespace soma::aio {

struct HttpReader::State {
  Kind kind = Kind::kRequest;
  std::unique_ptr<Http1Parser> parser;
  Bytes input;
  std::size_t used = 0;  // of input
  bool ended = false;
  bool stalled = false;
  std::optional<std::uint64_t> content_length;

  ByteView pending() const { return ByteView(input).subspan(used); }
  void Use(std::size_t bytes) {
    used += bytes;
    if (used == input.size()) {
      input.clear();
      used = 0;
    }
  }
};

HttpReader::HttpReader(ByteStream& stream, Kind kind, std::chrono::nanoseconds body_stall_max)
    : stream_(stream), body_stall_max_(body_stall_max), state_(std::make_unique<State>()) {
  state_->kind = kind;
}
HttpReader::HttpReader(ByteStream& stream, Kind kind) : HttpReader(stream, kind, kBodyStallMax) {}
HttpReader::~HttpReader() = default;

bool HttpReader::body_done() const { return !state_->parser || state_->parser->done(); }

bool HttpReader::body_stalled() const { return state_->stalled; }

Bytes HttpReader::TakeBuffered() {
  const ByteView rest = state_->pending();
  Bytes taken(rest.begin(), rest.end());
  state_->input.clear();
  state_->used = 0;
  return taken;
}

Task<void> HttpReader::Fill(std::chrono::nanoseconds timeout) {
  constexpr std::size_t kPiece = std::size_t{16} * 1024;
  stream_.SetReadDeadline(timeout);
  State& state = *state_;
  state.input.erase(state.input.begin(),
                    state.input.begin() + static_cast<std::ptrdiff_t>(state.used));
  state.used = 0;
  const std::size_t before = state.input.size();
  state.input.resize(before + kPiece);
  const auto size = co_await stream_.Read(std::span(state.input).subspan(before));
  state.input.resize(before + (size ? *size : 0));
  if (!size) co_return std::unexpected(size.error());
  if (*size == 0) state.ended = true;
  co_return Status();
}

Task<HttpHead> HttpReader::ReadHead(bool no_body) {
  State& state = *state_;
  state.parser = Http1Parser::Create(state.kind, no_body);
  bool waiting = true;  // for the first byte
  std::chrono::steady_clock::time_point end;
  while (!state.parser->head_done()) {
    if (!state.pending().empty()) {
      if (waiting) end = std::chrono::steady_clock::now() + kHeadTimeout;
      waiting = false;
      SOMA_CO_ASSIGN(const std::size_t used, state.parser->FeedHead(state.pending()));
      state.Use(used);
      if (used > 0) continue;
    }
    if (state.ended) {
      if (waiting) co_return Fail(Errc::kUnavailable, "the client has left");
      co_return Fail(Errc::kInvalidArgument, "the HTTP head is cut");
    }
    std::chrono::nanoseconds timeout = kIdleMax;
    if (!waiting) timeout = end - std::chrono::steady_clock::now();
    if (timeout <= std::chrono::nanoseconds(0)) {
      co_return Fail(Errc::kDeadlineExceeded, "the HTTP head did not arrive in time");
    }
    SOMA_CO_TRY(co_await Fill(timeout));
  }
  HttpHead head = state.parser->TakeHead();
  state.content_length = head.content_length;
  co_return head;
}

Task<std::size_t> HttpReader::ReadBody(std::span<std::uint8_t> out) {
  State& state = *state_;
  while (!body_done()) {
    if (!state.pending().empty()) {
      SOMA_CO_ASSIGN(const auto step, state.parser->FeedBody(state.pending(), out));
      state.Use(step.used);
      if (step.written > 0) co_return step.written;
      if (step.used > 0) continue;
    }
    if (state.ended) {
      SOMA_CO_TRY(state.parser->FeedEnd());
      break;
    }
    const Status filled = co_await Fill(body_stall_max_);
    if (!filled) {
      state.stalled = filled.error().code() == Errc::kDeadlineExceeded;
      co_return std::unexpected(filled.error());
    }
  }
  co_return std::size_t{0};
}

Task<std::string> HttpReader::ReadWholeBody(std::size_t size_max) {
  auto buffer = std::make_unique<std::array<std::uint8_t, std::size_t{16} * 1024>>();
  std::string whole;
  if (state_->content_length.value_or(0) > size_max) {
    co_return Fail(Errc::kOutOfRange, "the body is too large");
  }
  for (;;) {
    SOMA_CO_ASSIGN(const std::size_t size, co_await ReadBody(*buffer));
    if (size == 0) co_return whole;
    if (whole.size() + size > size_max) {
      co_return Fail(Errc::kOutOfRange, "the body is too large");
    }
    whole += AsText(ByteView(*buffer).first(size));
  }
}

namespace {
bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}
}  // namespace

const std::string* HttpHeaders::Find(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (EqualsIgnoringCase(key, name)) return &value;
  }
  return nullptr;
}

std::string_view HttpHeaders::Get(std::string_view name) const {
  const std::string* found = Find(name);
  return found == nullptr ? std::string_view() : std::string_view(*found);
}

void HttpHeaders::Add(std::string_view name, std::string_view value) {
  fields.emplace_back(name, value);
}

void HttpHeaders::Remove(std::string_view name) {
  std::erase_if(fields,
                [name](const auto& field) { return EqualsIgnoringCase(field.first, name); });
}

}  // namespace soma::aio
