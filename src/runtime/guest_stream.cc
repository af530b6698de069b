// SPDX-License-Identifier: Apache-2.0
#include "runtime/guest_stream.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "runtime/guest_link.h"
#include "wire/message.h"

namespace soma::runtime {
namespace {

class GuestStream final : public aio::ByteStream {
 public:
  explicit GuestStream(std::shared_ptr<GuestChannel> channel) : channel_(std::move(channel)) {}
  ~GuestStream() override = default;
  GuestStream(const GuestStream&) = delete;
  GuestStream& operator=(const GuestStream&) = delete;

  aio::Task<std::size_t> Read(std::span<std::uint8_t> out) override {
    const std::shared_ptr<GuestChannel> channel = channel_;
    while (offset_ == pending_.size() && !ended_) {
      auto message = co_await channel->Next(read_timeout_);
      if (!message) co_return std::unexpected(std::move(message).error());
      if (auto* data = std::get_if<wire::Data>(&*message)) {
        pending_ = std::move(data->bytes);
        offset_ = 0;
      } else if (std::holds_alternative<wire::End>(*message)) {
        ended_ = true;
      }
    }
    const std::size_t size = std::min(out.size(), pending_.size() - offset_);
    std::copy_n(pending_.begin() + static_cast<std::ptrdiff_t>(offset_), size, out.begin());
    offset_ += size;
    co_return size;
  }

  aio::Task<void> Write(ByteView bytes) override {
    const std::shared_ptr<GuestChannel> channel = channel_;
    co_return co_await channel->Write(wire::DataKind::kBytes, bytes, write_timeout_);
  }

  void SetReadDeadline(std::chrono::nanoseconds from_now) override { read_timeout_ = from_now; }
  void SetWriteDeadline(std::chrono::nanoseconds from_now) override { write_timeout_ = from_now; }
  void ShutdownWrite() override { channel_->Finish(); }
  void Close() override { channel_->Abort(Errc::kCancelled, "closed"); }
  void Reset() override { Close(); }

 private:
  std::shared_ptr<GuestChannel> channel_;
  Bytes pending_;
  std::size_t offset_ = 0;
  bool ended_ = false;
  std::chrono::nanoseconds read_timeout_ = std::chrono::hours(1);
  std::chrono::nanoseconds write_timeout_ = std::chrono::minutes(1);
};

}  // namespace

aio::Task<std::unique_ptr<aio::ByteStream>> DialGuest(GuestLink& link, std::uint16_t port,
                                                      std::chrono::nanoseconds timeout) {
  SOMA_CO_ASSIGN(auto channel, link.Request(wire::Dial{.port = port}));
  SOMA_CO_ASSIGN(const wire::Message reply, co_await channel->Next(timeout));
  if (!std::holds_alternative<wire::Opened>(reply)) {
    co_return Fail(Errc::kInternal, "the guest answers a dial with something else");
  }
  co_return MakeGuestStream(std::move(channel));
}

std::unique_ptr<aio::ByteStream> MakeGuestStream(std::shared_ptr<GuestChannel> channel) {
  return std::make_unique<GuestStream>(std::move(channel));
}

}  // namespace soma::runtime
