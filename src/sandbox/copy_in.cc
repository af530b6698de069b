// SPDX-License-Identifier: Apache-2.0
#include "sandbox/copy_in.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "runtime/guest_link.h"
#include "sandbox/foreground_message.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "wire/message.h"

namespace soma::sandbox {
namespace {

using runtime::GuestChannel;

// One answer, or one piece taken: an emulated machine under load is slow, but not that slow.
constexpr std::chrono::seconds kPatience{120};
// Pieces on their way at the same time; below what the guest is ready to hold.
constexpr std::size_t kInFlightMax = 8;
constexpr std::size_t kComplaintMax = 512;

// How tar ended, in words; empty when all is well.
aio::Task<std::string> TarEnd(std::shared_ptr<GuestChannel> channel) {
  std::string said;
  for (;;) {
    SOMA_CO_ASSIGN(const wire::Message message, co_await channel->Next(kPatience));
    if (const auto* data = std::get_if<wire::Data>(&message)) {
      const std::size_t size = std::min(data->bytes.size(), kComplaintMax - said.size());
      said.append(data->bytes.begin(), data->bytes.begin() + static_cast<std::ptrdiff_t>(size));
    } else if (const auto* exit = std::get_if<wire::Exit>(&message)) {
      if (exit->signal == 0 && exit->code == 0) co_return std::string();
      co_return StrCat("tar inside: ", EscapeForTerminal(exit->status), ": ",
                       EscapeForTerminal(said));
    }
  }
}

// Empty at the end of the stream.
aio::Task<Bytes> NextPiece(aio::Loop& loop, const Fd& pieces) {
  for (;;) {
    SOMA_CO_ASSIGN(const bool readable, co_await aio::WaitReadable(loop, pieces.get(), kPatience));
    if (!readable) co_return Fail(Errc::kDeadlineExceeded, "the workspace's copy does not go on");
    Bytes piece(kCopyPieceMax);
    const auto packet = sys::ReceivePacket(pieces, piece, 0);
    if (!packet && packet.error().errno_value() == EAGAIN) continue;
    if (!packet) co_return std::unexpected(packet.error());
    if (packet->size == 0) co_return Fail(Errc::kCancelled, "the workspace was not copied whole");
    piece.resize(packet->size == kCopyEndSize ? 0 : packet->size);
    co_return piece;
  }
}

// Sends everything; stops early, without an error, when tar takes no more: it says why by its end.
aio::Task<void> Feed(aio::Loop& loop, runtime::GuestLink& link, const Fd& pieces,
                     std::uint32_t pid) {
  const wire::TaskSelector task{.pid = pid, .tag = {}};
  std::deque<std::shared_ptr<GuestChannel>> in_flight;
  for (;;) {
    SOMA_CO_ASSIGN(const Bytes piece, co_await NextPiece(loop, pieces));
    if (piece.empty()) break;
    ByteView rest = piece;
    while (!rest.empty()) {
      const ByteView part = rest.first(std::min(rest.size(), wire::kDataMax));
      rest = rest.subspan(part.size());
      SOMA_CO_ASSIGN(auto sent, link.Request(wire::Stdin{
                                    .task = task, .bytes = Bytes(part.begin(), part.end())}));
      in_flight.push_back(std::move(sent));
      if (in_flight.size() < kInFlightMax) continue;
      if (!co_await in_flight.front()->Next(kPatience)) co_return Status();
      in_flight.pop_front();
    }
  }
  for (const auto& sent : in_flight) {
    if (!co_await sent->Next(kPatience)) co_return Status();
  }
  (void)co_await link.Call(wire::CloseStdin{.task = task}, kPatience);
  co_return Status();
}

}  // namespace

aio::Task<void> CopyIn(aio::Loop& loop, runtime::GuestLink& link, const Fd& pieces,
                       std::string directory, std::string user) {
  const auto made = co_await link.Call(wire::MakeDir{.user = user, .path = directory}, kPatience);
  if (!made) co_return std::unexpected(made.error());
  wire::Start start;
  start.profile = "strict";
  start.arguments = {"tar",
                     "--extract",
                     "--preserve-permissions",
                     "--no-same-owner",
                     "--file=-",
                     StrCat("--directory=", directory)};
  start.user = user;
  start.workdir = "/";
  start.has_stdin = true;
  SOMA_CO_ASSIGN(auto channel, link.Request(start));
  SOMA_CO_ASSIGN(const wire::Message reply, co_await channel->Next(kPatience));
  const auto* started = std::get_if<wire::Started>(&reply);
  if (started == nullptr) co_return Fail(Errc::kInternal, "the guest starts tar without saying so");
  SOMA_CO_TRY(co_await Feed(loop, link, pieces, started->pid));
  SOMA_CO_ASSIGN(const std::string complaint, co_await TarEnd(channel));
  if (!complaint.empty()) co_return Fail(Errc::kInternal, complaint);
  co_return Status();
}

}  // namespace soma::sandbox
