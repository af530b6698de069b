// SPDX-License-Identifier: Apache-2.0
#include "runtime/guest_core.h"

#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "runtime/guest_link.h"
#include "sys/fd.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::runtime {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

GuestCore::GuestCore(aio::Loop& loop, Fd wire, GuestLinkOptions link_options)
    : identified(loop),
      options(std::move(link_options)),
      loop_(loop),
      wire_(loop.executor()),
      output_ready_(loop) {
  boost::system::error_code ec;
  wire_.assign(wire.get(), ec);
  if (!ec) {
    (void)wire.Release();
    wire_.non_blocking(true, ec);
  }
  if (ec) Die(StrCat("the wire cannot be used: ", ec.message()));
}

void GuestCore::Run() {
  if (!alive_) return;
  // The pumps hold the core and end with the wire, which Die closes: nothing outlives the link by
  // more than one turn of the loop.
  loop_.SpawnRoot(PumpIn());
  loop_.SpawnRoot(PumpOut());
}

void GuestCore::Die(const std::string& why) {
  if (!alive_) return;
  alive_ = false;
  death_ = why;
  boost::system::error_code ignored;
  wire_.close(ignored);
  for (const auto& [id, mailbox] : mailboxes_) {
    mailbox->messages.emplace_back(
        wire::Failed{.code = Errc::kUnavailable, .errno_value = 0, .message = why});
    mailbox->over = true;
    mailbox->changed.NotifyAll();
  }
  mailboxes_.clear();
  output_ready_.NotifyAll();
  identified.NotifyAll();
}

void GuestCore::Flush() { output_ready_.NotifyAll(); }

std::shared_ptr<GuestMailbox> GuestCore::OpenMailbox(wire::ChannelId id) {
  auto mailbox = std::make_shared<GuestMailbox>(loop_);
  mailboxes_.insert_or_assign(id, mailbox);
  return mailbox;
}

std::shared_ptr<GuestMailbox> GuestCore::FindMailbox(wire::ChannelId id) {
  const auto found = mailboxes_.find(id);
  return found == mailboxes_.end() ? nullptr : found->second;
}

void GuestCore::CloseMailbox(wire::ChannelId id) { mailboxes_.erase(id); }

aio::Job GuestCore::PumpIn() {
  const std::shared_ptr<GuestCore> self = shared_from_this();
  auto buffer = std::make_unique<std::array<std::uint8_t, wire::kInputMax>>();
  while (alive_) {
    const ssize_t size = ::read(wire_.native_handle(), buffer->data(), buffer->size());
    if (size > 0) {
      session_.OnBytes(ByteView(*buffer).first(static_cast<std::size_t>(size)));
      while (auto event = session_.Next()) Handle(*std::move(event));
      Flush();
      // A guest that never stops talking gets its turn like everybody else, not the whole loop.
      co_await asio::post(wire_.get_executor(), asio::use_awaitable);
      continue;
    }
    if (size == 0) {
      Die("the sandbox has ended");
    } else if (errno == EAGAIN) {
      const auto [ec] =
          co_await wire_.async_wait(Descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
      if (ec) Die("the wire was closed");
    } else if (errno != EINTR) {
      Die(StrCat("reading from the wire: ", ErrnoName(errno)));
    }
  }
}

aio::Job GuestCore::PumpOut() {
  const std::shared_ptr<GuestCore> self = shared_from_this();
  while (alive_) {
    const ByteView out = session_.Output();
    if (out.empty()) {
      co_await output_ready_.Wait(std::chrono::hours(1));
      continue;
    }
    const ssize_t size = ::write(wire_.native_handle(), out.data(), out.size());
    if (size > 0) {
      session_.Wrote(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      const auto [ec] =
          co_await wire_.async_wait(Descriptor::wait_write, asio::as_tuple(asio::use_awaitable));
      if (ec) Die("the wire was closed");
    } else if (errno != EINTR) {
      Die(StrCat("writing to the wire: ", ErrnoName(errno)));
    }
  }
}

void GuestCore::Handle(wire::SessionEvent event) {
  switch (event.kind) {
    case wire::SessionEvent::Kind::kMessage:
      HandleMessage(std::move(event));
      break;
    case wire::SessionEvent::Kind::kWritable:
      if (const auto mailbox = FindMailbox(event.channel)) {
        mailbox->writable = true;
        mailbox->changed.NotifyAll();
      }
      break;
    case wire::SessionEvent::Kind::kBroken:
      Die(StrCat("the guest broke the protocol: ", EscapeForTerminal(event.reason)));
      break;
    case wire::SessionEvent::Kind::kEstablished:
    case wire::SessionEvent::Kind::kQuiesced:
    case wire::SessionEvent::Kind::kResumed:
      break;
  }
}

void GuestCore::HandleMessage(wire::SessionEvent event) {
  if (event.channel == wire::kControlChannel) {
    HandleControl(std::move(event.message));
    return;
  }
  if (event.opens) {
    if (!options.on_request) {
      (void)session_.Reply(event.channel, wire::Failed{.code = Errc::kPermissionDenied,
                                                       .errno_value = EACCES,
                                                       .message = "nothing may leave"});
      return;
    }
    OpenMailbox(event.channel);
    options.on_request(std::make_shared<GuestChannel>(shared_from_this(), event.channel),
                       std::move(event.message));
    return;
  }
  const auto mailbox = FindMailbox(event.channel);
  if (!mailbox) return;
  // Credit bounds only Data.
  if (!std::holds_alternative<wire::Data>(event.message) &&
      ++mailbox->others_waiting > kOthersWaitingMax) {
    Die(StrCat("the guest broke the protocol: more than ", kOthersWaitingMax,
               " answers that nobody took yet, the last ", wire::MessageName(event.message)));
    return;
  }
  mailbox->messages.push_back(std::move(event.message));
  if (event.closes) {
    mailbox->over = true;
    CloseMailbox(event.channel);
  }
  mailbox->changed.NotifyAll();
}

void GuestCore::HandleControl(wire::Message message) {
  if (auto* found = std::get_if<wire::Identity>(&message)) {
    identity = std::move(*found);
    identified.NotifyAll();
  } else if (const auto* denied = std::get_if<wire::Denied>(&message)) {
    if (options.on_denied) options.on_denied(*denied);
  }
}

}  // namespace soma::runtime
