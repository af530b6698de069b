// SPDX-License-Identifier: Apache-2.0
#include "runtime/guest_link.h"

#include <chrono>
#include <cstddef>
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
#include "runtime/guest_core.h"
#include "sys/fd.h"
#include "wire/message.h"

namespace soma::runtime {

GuestChannel::GuestChannel(std::shared_ptr<GuestCore> core, wire::ChannelId id)
    : core_(std::move(core)), id_(id), mailbox_(core_->FindMailbox(id)) {}

GuestChannel::~GuestChannel() { Abort(Errc::kCancelled, "nobody waits for it any more"); }

aio::Task<wire::Message> GuestChannel::Next(std::chrono::nanoseconds timeout) {
  const std::shared_ptr<GuestMailbox> mailbox = mailbox_;
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (mailbox->messages.empty()) {
    if (mailbox->over) co_return Fail(Errc::kCancelled, "the operation is over");
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) {
      co_return Fail(Errc::kDeadlineExceeded, "the sandbox did not answer in time");
    }
    co_await mailbox->changed.Wait(left);
  }
  wire::Message message = std::move(mailbox->messages.front());
  mailbox->messages.pop_front();
  if (const auto* data = std::get_if<wire::Data>(&message)) {
    core_->session().Consumed(id_, data->bytes.size());
    core_->Flush();
    co_return message;
  }
  if (mailbox->others_waiting > 0) --mailbox->others_waiting;
  if (auto* failed = std::get_if<wire::Failed>(&message)) {
    co_return std::unexpected(Error(failed->code, std::move(failed->message)));
  } else if (auto* reset = std::get_if<wire::Reset>(&message)) {
    co_return std::unexpected(Error(reset->code, std::move(reset->message)));
  }
  co_return message;
}

aio::Task<void> GuestChannel::Write(wire::DataKind kind, ByteView bytes,
                                    std::chrono::nanoseconds stall_max) {
  const std::shared_ptr<GuestMailbox> mailbox = mailbox_;
  while (!bytes.empty()) {
    if (!core_->alive()) co_return Fail(Errc::kUnavailable, core_->death());
    if (mailbox->over) co_return Fail(Errc::kCancelled, "the operation is over");
    mailbox->writable = false;
    const std::size_t taken = core_->session().Write(id_, kind, bytes);
    if (taken > 0) core_->Flush();
    bytes = bytes.subspan(taken);
    if (bytes.empty()) break;
    const auto end = std::chrono::steady_clock::now() + stall_max;
    while (!mailbox->writable && !mailbox->over) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= std::chrono::nanoseconds(0)) {
        co_return Fail(Errc::kDeadlineExceeded, "the sandbox takes no more bytes");
      }
      co_await mailbox->changed.Wait(left);
    }
  }
  co_return Status();
}

void GuestChannel::Finish() {
  core_->session().Finish(id_);
  core_->Flush();
}

Status GuestChannel::Reply(const wire::Message& reply) {
  const Status status = core_->session().Reply(id_, reply);
  core_->Flush();
  return status;
}

void GuestChannel::Abort(Errc code, const std::string& message) {
  if (core_->session().IsOpen(id_)) {
    core_->session().Abort(id_, code, message);
    core_->Flush();
  }
  core_->CloseMailbox(id_);
  mailbox_->over = true;
  mailbox_->changed.NotifyAll();
}

GuestLink::GuestLink(aio::Loop& loop, Fd wire, GuestLinkOptions options)
    : core_(std::make_shared<GuestCore>(loop, std::move(wire), std::move(options))) {
  core_->Run();
}

GuestLink::~GuestLink() {
  // The handlers belong to the owner, who is going away.
  core_->options.on_request = nullptr;
  core_->options.on_denied = nullptr;
  core_->Die("the sandbox was let go");
}

bool GuestLink::alive() const { return core_->alive(); }
void GuestLink::Close(const std::string& why) { core_->Die(why); }

aio::Task<wire::Identity> GuestLink::Establish(std::chrono::nanoseconds timeout) {
  const std::shared_ptr<GuestCore> core = core_;
  core->session().Hello({.epoch = core->options.epoch,
                         .secret = core->options.secret,
                         .next_secret = core->options.next_secret,
                         .resume = false});
  core->Flush();
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!core->identity) {
    if (!core->alive()) co_return Fail(Errc::kUnavailable, core->death());
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) {
      co_return Fail(Errc::kDeadlineExceeded, "the guest agent does not answer");
    }
    co_await core->identified.Wait(left);
  }
  co_return *core->identity;
}

Result<std::shared_ptr<GuestChannel>> GuestLink::Request(const wire::Message& request) {
  if (!core_->alive()) return Fail(Errc::kUnavailable, core_->death());
  SOMA_ASSIGN(const wire::ChannelId id, core_->session().Request(request));
  core_->OpenMailbox(id);
  core_->Flush();
  return std::make_shared<GuestChannel>(core_, id);
}

aio::Task<wire::Message> GuestLink::Call(wire::Message request, std::chrono::nanoseconds timeout) {
  SOMA_CO_ASSIGN(const auto channel, Request(request));
  co_return co_await channel->Next(timeout);
}

}  // namespace soma::runtime
