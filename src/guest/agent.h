// SPDX-License-Identifier: Apache-2.0
// Agent: pid 1 inside a sandbox. One thread, one loop: moves bytes between the wire and its
// session, answers requests, reaps.
//
// The agent outlives the host's side: when a peer is lost it keeps its tasks running, and the next
// HELLO continues (wire/link.h). Only when nobody can ever come back (end of file on a socket) does
// it end, and with it, as it is pid 1, everything inside. Input from the wire is checked like any
// foreign input, although the host is the stronger side; everything below (files, tasks) is
// hostile.
#ifndef SOMA_GUEST_AGENT_H_
#define SOMA_GUEST_AGENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "guest/egress_gate.h"
#include "guest/loop.h"
#include "guest/operation.h"
#include "guest/settings.h"
#include "guest/task_table.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

enum class WireKind : std::uint8_t {
  kSocket,  // end of file is the end
  // A virtio-serial port: end of file only says that nobody is at the other end now.
  kVirtio,
};

class Agent {
 public:
  static Result<std::unique_ptr<Agent>> Create(Clock& clock, Fd wire, WireKind kind);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Takes over the way out of a virtual machine; before Run.
  Status ServeEgress(CaptureListeners listeners) { return egress_.Serve(std::move(listeners)); }

  // Until the wire ends.
  Status Run();

 private:
  Agent(Clock& clock, Loop loop, Fd wire, WireKind kind);

  Status SetUp();
  int TimeoutMilliseconds();
  // True when something was moved.
  bool ReadWire();
  bool WriteWire();
  void DrainEvents();
  void Reap();

  void OnEvent(wire::SessionEvent event);
  void OnMessage(wire::SessionEvent& event);
  void OnRequest(wire::ChannelId channel, wire::Message message);
  void ForgetChannel(wire::ChannelId channel);
  void Sweep();
  void SayWhoWeAre();

  // One for each request of the wire; the caller answers an error.
  Status Handle(wire::ChannelId channel, wire::Init& request);
  Status Handle(wire::ChannelId channel, wire::Start& request);
  Status Handle(wire::ChannelId channel, wire::Attach& request);
  Status Handle(wire::ChannelId channel, wire::ListTasks& request);
  Status Handle(wire::ChannelId channel, wire::Signal& request);
  Status Handle(wire::ChannelId channel, wire::Resize& request);
  Status Handle(wire::ChannelId channel, wire::Stdin& request);
  Status Handle(wire::ChannelId channel, wire::CloseStdin& request);
  Status Handle(wire::ChannelId channel, wire::Stat& request);
  Status Handle(wire::ChannelId channel, wire::ListDir& request);
  Status Handle(wire::ChannelId channel, wire::MakeDir& request);
  Status Handle(wire::ChannelId channel, wire::Move& request);
  Status Handle(wire::ChannelId channel, wire::Remove& request);
  Status Handle(wire::ChannelId channel, wire::ReadFile& request);
  Status Handle(wire::ChannelId channel, wire::WriteFile& request);
  Status Handle(wire::ChannelId channel, wire::Watch& request);
  Status Handle(wire::ChannelId channel, wire::GetStats& request);
  Status Handle(wire::ChannelId channel, wire::Dial& request);

  Status Reply(wire::ChannelId channel, const wire::Message& message);
  Status ReplyEntry(wire::ChannelId channel, const std::string& path);
  // Keeps an operation until its channel closes, and lets it begin.
  Status Keep(wire::ChannelId channel, std::unique_ptr<Operation> operation);

  Clock& clock_;
  Loop loop_;
  Fd wire_;
  const WireKind kind_;
  Fd signals_;
  Loop::Registration wire_ready_;
  Loop::Registration signals_ready_;
  bool readable_ = true;
  bool writable_ = true;
  bool nobody_there_ = false;
  bool ended_ = false;
  Bytes buffer_;

  wire::Session session_{wire::Role::kGuest};
  Settings settings_;
  TaskTable tasks_;
  std::map<wire::ChannelId, pid_t> readers_;  // channels of Start and Attach
  EgressGate egress_;
  std::map<wire::ChannelId, std::unique_ptr<Operation>> operations_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_AGENT_H_
