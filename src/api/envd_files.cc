// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aio/http.h"
#include "aio/task.h"
#include "api/answers.h"
#include "api/byte_range.h"
#include "api/entry_shape.h"
#include "api/envd.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"
#include "parse/multipart.h"
#include "sandbox/guest_calls.h"

namespace soma::api {
namespace {

using parse::Json;

constexpr std::chrono::seconds kPatience{60};
// Bounds of file metadata (e2b.md section 3.5).
constexpr std::size_t kMetadataTotalMax = 4096;
constexpr std::size_t kMetadataKeyMax = 246;
constexpr std::string_view kMetadataPrefix = "x-metadata-";

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// X-Metadata-<key> headers.
Result<std::vector<wire::KeyValue>> ReadMetadata(const aio::HttpHeaders& headers) {
  std::vector<wire::KeyValue> metadata;
  std::size_t total = 0;
  for (const auto& [name, value] : headers.fields) {
    const std::string lower = Lower(name);
    if (!lower.starts_with(kMetadataPrefix)) continue;
    std::string key = lower.substr(kMetadataPrefix.size());
    const bool printable = std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7F; });
    total += key.size() + value.size();
    if (key.empty() || key.size() > kMetadataKeyMax || !printable || total > kMetadataTotalMax ||
        metadata.size() >= wire::kMetadataCountMax) {
      return Fail(Errc::kInvalidArgument, "invalid file metadata");
    }
    metadata.push_back({.key = std::move(key), .value = value});
  }
  return metadata;
}

// What the guest says about files in a plain endpoint's status: a full disk is 507.
aio::Task<void> RespondFileError(EnvdCall& call, const Error& error) {
  if (!call.sandbox->alive()) {
    co_return co_await RespondNoSandbox(call.exchange, call.sandbox->record().id);
  }
  int status = HttpStatusFor(call.exchange, error);
  if (error.code() == Errc::kResourceExhausted) status = 507;
  if (error.code() == Errc::kFailedPrecondition) status = 400;
  co_return co_await RespondError(call.exchange, status, error.message());
}

// Sends what the channel brings until its Ok, at most `length` bytes. A file that fails or shrinks
// on the way breaks the connection: the client must not take a part for the whole.
aio::Task<void> StreamFile(EnvdCall& call, runtime::GuestChannel& channel, wire::Message first,
                           std::optional<std::uint64_t> length) {
  std::uint64_t left = length.value_or(UINT64_MAX);
  while (left > 0) {
    const auto* data = std::get_if<wire::Data>(&first);
    if (data == nullptr) break;
    const std::size_t size = std::min<std::uint64_t>(left, data->bytes.size());
    left -= size;
    SOMA_CO_TRY(co_await call.exchange.WritePiece(AsText(ByteView(data->bytes).first(size))));
    if (left == 0) break;
    auto next = co_await channel.Next(kPatience);
    if (!next) {
      call.exchange.Reset();
      co_return Status();
    }
    first = *std::move(next);
  }
  if (length && left > 0) {
    call.exchange.Reset();
    co_return Status();
  }
  co_return co_await call.exchange.FinishStream();
}

class Upload {
 public:
  Upload(EnvdCall& call, std::vector<wire::KeyValue> metadata)
      : call_(call), metadata_(std::move(metadata)) {}

  aio::Task<void> Begin(std::string path) {
    if (!paths_.insert(path).second) {
      co_return Fail(Errc::kInvalidArgument,
                     StrCat("the path \"", EscapeForTerminal(path), "\" is uploaded twice"));
    }
    SOMA_CO_ASSIGN(channel_, call_.sandbox->link().Request(wire::WriteFile{.user = call_.user,
                                                                           .path = std::move(path),
                                                                           .mode = 0644,
                                                                           .atomic = false,
                                                                           .metadata = metadata_}));
    SOMA_CO_ASSIGN(const wire::Message opened, co_await channel_->Next(kPatience));
    if (!std::holds_alternative<wire::Opened>(opened)) {
      co_return Fail(Errc::kInternal, "the guest does not take the file");
    }
    co_return Status();
  }

  aio::Task<void> Put(ByteView bytes) {
    const auto written = co_await channel_->Write(wire::DataKind::kBytes, bytes, kPatience);
    if (written || written.error().code() != Errc::kCancelled) co_return written;
    // The guest has ended the operation: its reply says why.
    SOMA_CO_ASSIGN(const wire::Message reply, co_await channel_->Next(kPatience));
    (void)reply;
    co_return written;
  }

  aio::Task<void> End() {
    channel_->Finish();
    SOMA_CO_ASSIGN(const wire::Message reply, co_await channel_->Next(kPatience));
    const auto* entry = std::get_if<wire::Entry>(&reply);
    if (entry == nullptr) co_return Fail(Errc::kInternal, "the guest does not confirm the file");
    written_.Append(WrittenShape(entry->info));
    channel_ = nullptr;
    co_return Status();
  }

  const Json& written() const { return written_; }

 private:
  EnvdCall& call_;
  std::vector<wire::KeyValue> metadata_;
  std::shared_ptr<runtime::GuestChannel> channel_;
  std::set<std::string> paths_;
  Json written_ = Json::MakeArray();
};

using Buffer = std::array<std::uint8_t, std::size_t{32} * 1024>;

aio::Task<void> UploadRaw(EnvdCall& call, Upload& upload) {
  const std::string* path = call.target.Find("path");
  if (path == nullptr || path->empty()) {
    co_return Fail(Errc::kInvalidArgument, "the query names no path");
  }
  SOMA_CO_TRY(co_await upload.Begin(*path));
  auto buffer = std::make_unique<Buffer>();
  for (;;) {
    SOMA_CO_ASSIGN(const std::size_t size, co_await call.exchange.body().ReadBody(*buffer));
    if (size == 0) break;
    SOMA_CO_TRY(co_await upload.Put(ByteView(*buffer).first(size)));
  }
  co_return co_await upload.End();
}

aio::Task<void> TakePart(EnvdCall& call, Upload& upload, parse::MultipartEvent event,
                         bool& in_file) {
  using Kind = parse::MultipartEvent::Kind;
  if (event.kind == Kind::kPart) {
    in_file = event.name == "file";
    if (!in_file) co_return Status();
    // The query's path is for an upload of one file; with several the parts carry theirs.
    const std::string* path = call.target.Find("path");
    const bool from_query = path != nullptr && !path->empty();
    co_return co_await upload.Begin(from_query ? *path : std::move(event.filename));
  }
  if (!in_file) co_return Status();
  if (event.kind == Kind::kData) co_return co_await upload.Put(AsBytes(event.data));
  co_return co_await upload.End();
}

aio::Task<void> UploadMultipart(EnvdCall& call, Upload& upload, std::string boundary) {
  parse::MultipartReader reader(boundary);
  auto buffer = std::make_unique<Buffer>();
  bool in_file = false;
  for (;;) {
    SOMA_CO_ASSIGN(const std::size_t size, co_await call.exchange.body().ReadBody(*buffer));
    if (size == 0) break;
    reader.Feed(AsText(ByteView(*buffer).first(size)));
    while (auto event = reader.Next()) {
      SOMA_CO_TRY(co_await TakePart(call, upload, *std::move(event), in_file));
    }
    if (!reader.error().empty()) co_return Fail(Errc::kInvalidArgument, reader.error());
  }
  if (!reader.finished()) co_return Fail(Errc::kInvalidArgument, "the multipart body is cut");
  co_return Status();
}

aio::Task<void> TakeUpload(EnvdCall& call, Upload& upload) {
  const std::string_view type = call.exchange.head().headers.Get("content-type");
  if (Lower(type).starts_with("application/octet-stream")) {
    co_return co_await UploadRaw(call, upload);
  }
  SOMA_CO_ASSIGN(std::string boundary, parse::MultipartBoundary(type));
  co_return co_await UploadMultipart(call, upload, std::move(boundary));
}

}  // namespace

aio::Task<void> UploadFiles(EnvdCall& call) {
  const aio::HttpHeaders& headers = call.exchange.head().headers;
  const std::string_view encoding = headers.Get("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    co_return co_await RespondError(call.exchange, 415, "compressed uploads are not supported");
  }
  auto metadata = ReadMetadata(headers);
  if (!metadata) co_return co_await RespondError(call.exchange, metadata.error());
  Upload upload(call, *std::move(metadata));
  const Status done = co_await TakeUpload(call, upload);
  if (!done) co_return co_await RespondFileError(call, done.error());
  co_return co_await RespondJson(call.exchange, 200, upload.written());
}

aio::Task<void> DownloadFile(EnvdCall& call) {
  const std::string* path = call.target.Find("path");
  if (path == nullptr || path->empty()) {
    co_return co_await RespondError(call.exchange, 400, "the query names no path");
  }
  const auto range = ParseByteRange(call.exchange.head().headers.Get("range"));
  wire::ReadFile request{.user = call.user, .path = *path};
  if (range) {
    request.offset = range->first;
    if (range->last) request.length = *range->last - range->first + 1;
  }
  auto channel = call.sandbox->link().Request(request);
  if (!channel) co_return co_await RespondFileError(call, channel.error());
  auto opened = co_await (*channel)->Next(kPatience);
  if (!opened) co_return co_await RespondFileError(call, opened.error());
  const auto* info = std::get_if<wire::Opened>(&*opened);
  if (info == nullptr) co_return Fail(Errc::kInternal, "the guest does not open the file");
  const std::uint64_t size = info->info.size;
  if (range && range->first >= size && size > 0) {
    co_return co_await RespondError(call.exchange, 416, "the range is beyond the file's end");
  }
  auto first = co_await (*channel)->Next(kPatience);
  if (!first) co_return co_await RespondFileError(call, first.error());
  aio::HttpHeaders headers;
  // A file of /proc says that it is empty and is not: it is streamed without a length.
  std::optional<std::uint64_t> length = size;
  if (size == 0 && std::holds_alternative<wire::Data>(*first)) length = std::nullopt;
  int status = 200;
  if (range && length && size > 0) {
    const std::uint64_t last = std::min(range->last.value_or(size - 1), size - 1);
    length = last - range->first + 1;
    status = 206;
    headers.Add("Content-Range", StrCat("bytes ", range->first, "-", last, "/", size));
  }
  SOMA_CO_TRY(co_await call.exchange.StartStream(status, "application/octet-stream", length,
                                                 std::move(headers)));
  co_return co_await StreamFile(call, **channel, *std::move(first), length);
}

}  // namespace soma::api
