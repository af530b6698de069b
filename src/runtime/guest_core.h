// SPDX-License-Identifier: Apache-2.0
// GuestCore: the inside of GuestLink, shared by the link, its channels and its two pumps. For this
// room only; guest_link.h has the contract.
#ifndef SOMA_RUNTIME_GUEST_CORE_H_
#define SOMA_RUNTIME_GUEST_CORE_H_

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/task.h"
#include "base/error.h"
#include "runtime/guest_link.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::runtime {

// Messages other than Data that may wait in one mailbox. An operation is answered by a handful.
inline constexpr std::size_t kOthersWaitingMax = 64;

// What has arrived for one channel and was not taken yet: Data within the session's credit, and so
// many others.
struct GuestMailbox {
  explicit GuestMailbox(aio::Loop& loop) : changed(loop) {}
  std::deque<wire::Message> messages;
  std::size_t others_waiting = 0;  // of `messages`, those that are not Data
  bool over = false;               // nothing follows what is in `messages`
  bool writable = false;           // set by kWritable
  aio::Condition changed;
};

class GuestCore : public std::enable_shared_from_this<GuestCore> {
 public:
  GuestCore(aio::Loop& loop, Fd wire, GuestLinkOptions options);

  aio::Loop& loop() { return loop_; }
  wire::Session& session() { return session_; }
  bool alive() const { return alive_; }
  const std::string& death() const { return death_; }

  // Starts the pumps; they hold the core until the wire ends.
  void Run();
  // Closes the wire and ends every channel with kUnavailable.
  void Die(const std::string& why);
  // Wakes the writer after the session was given something to say.
  void Flush();

  std::shared_ptr<GuestMailbox> OpenMailbox(wire::ChannelId id);
  std::shared_ptr<GuestMailbox> FindMailbox(wire::ChannelId id);
  void CloseMailbox(wire::ChannelId id);

  std::optional<wire::Identity> identity;
  aio::Condition identified;
  GuestLinkOptions options;

 private:
  aio::Job PumpIn();
  aio::Job PumpOut();
  void Handle(wire::SessionEvent event);
  void HandleMessage(wire::SessionEvent event);
  void HandleControl(wire::Message message);

  aio::Loop& loop_;
  wire::Session session_{wire::Role::kHost};
  boost::asio::posix::stream_descriptor wire_;
  std::map<wire::ChannelId, std::shared_ptr<GuestMailbox>> mailboxes_;
  aio::Condition output_ready_;
  bool alive_ = true;
  std::string death_;
};

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_GUEST_CORE_H_
