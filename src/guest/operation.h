// SPDX-License-Identifier: Apache-2.0
// Operation: what goes on on one channel after its request, when it can't be answered at once.
#ifndef SOMA_GUEST_OPERATION_H_
#define SOMA_GUEST_OPERATION_H_

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

// The Failed that says this error, cut to what the wire takes.
inline wire::Failed ToFailed(const Error& error) {
  return {.code = error.code(),
          .errno_value = error.errno_value(),
          .message = error.message().substr(0, wire::kTextMax)};
}

// Lives in the agent's table until its channel is closed, by either side.
class Operation {
 public:
  Operation(wire::Session& session, wire::ChannelId channel)
      : session_(session), channel_(channel) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Data and End from the host. Data has to be Consumed.
  virtual void OnMessage(wire::Message&) {}
  // On a channel that the agent opened: whatever the host says, the terminal reply included.
  virtual void OnReply(wire::Message&) {}
  // Must outlive its channel for a little.
  virtual bool HasWork() const { return false; }
  // The session takes bytes for this channel (again).
  virtual void OnWritable() {}

 protected:
  // A failing reply means that the channel is closed, and then nobody wants to know.
  void Reply(const wire::Message& message) { static_cast<void>(session_.Reply(channel_, message)); }
  void Fail(const Error& error) { Reply(ToFailed(error)); }
  wire::Session& session() { return session_; }
  wire::ChannelId channel() const { return channel_; }

 private:
  wire::Session& session_;
  wire::ChannelId channel_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_OPERATION_H_
