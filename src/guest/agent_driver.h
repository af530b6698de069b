// SPDX-License-Identifier: Apache-2.0
// AgentDriver: for tests, a real agent in a child process and a host's Session on the other end of
// a socketpair. Every wait has a deadline far beyond what it should take; running into it fails the
// test.
#ifndef SOMA_GUEST_AGENT_DRIVER_H_
#define SOMA_GUEST_AGENT_DRIVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "guest/egress_gate.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

// What has arrived on one channel.
struct Arrived {
  std::vector<wire::Message> messages;  // without Data
  std::string out;                      // kStdout, kPty, kBytes, kRecords
  std::string err;
  std::uint64_t lost = 0;
  bool closed = false;

  template <typename T>
  const T* Find() const {
    for (const wire::Message& message : messages) {
      if (const T* found = std::get_if<T>(&message)) return found;
    }
    return nullptr;
  }
};

class AgentDriver {
 public:
  // With kRooted the agent lives under the seccomp filter that a container gives it.
  enum class Filter : std::uint8_t { kNone, kRooted };
  explicit AgentDriver(Filter filter = Filter::kNone);
  // An agent that holds a way out of a virtual machine.
  explicit AgentDriver(CaptureListeners listeners);
  ~AgentDriver();

  // A new session object, as a new server process would have, on the same wire. Bytes that the old
  // one had not read are lost if `lose_input`.
  void Reconnect(bool lose_input = false);
  // Sends the current session's output only in part, and drops the rest: a server killed in the
  // middle of a write.
  void WriteHalfAFrame();

  wire::ChannelId Request(const wire::Message& request);
  // Moves bytes until `done`, or fails the test.
  void Until(const std::function<bool()>& done);
  // Until the channel is closed.
  const Arrived& Finish(wire::ChannelId channel);
  const Arrived& Run(const wire::Message& request) { return Finish(Request(request)); }
  const Arrived& operator[](wire::ChannelId channel) { return arrived_[channel]; }
  // The channels that the agent has opened, with their requests, in order.
  const std::vector<std::pair<wire::ChannelId, wire::Message>>& opened() const { return opened_; }
  // Consume nothing from now on: a reader that is stuck.
  void StopConsuming() { consuming_ = false; }

  wire::Session& session() { return *session_; }
  int wire() const { return wire_.get(); }
  pid_t pid() const { return agent_.pid(); }
  // Waits for the agent's end; its exit code.
  int WaitForEnd();
  void CloseWire() { wire_.Reset(); }

 private:
  void Begin(Filter filter, CaptureListeners listeners);
  void Step();
  void Take(wire::SessionEvent event);

  Fd wire_;
  sys::Process agent_;
  std::uint64_t epoch_ = 1;
  bool consuming_ = true;
  bool reaped_ = false;
  std::unique_ptr<wire::Session> session_;
  std::map<wire::ChannelId, Arrived> arrived_;
  std::vector<std::pair<wire::ChannelId, wire::Message>> opened_;
};

// A shell command under `strict`, as whoever the default user is.
wire::Start Command(const std::string& text);

}  // namespace soma::guest

#endif  // SOMA_GUEST_AGENT_DRIVER_H_
