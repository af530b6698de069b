// SPDX-License-Identifier: Apache-2.0
#include "runtime/launched/control_connection.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/client.h"
#include "control/messages.h"
#include "sys/fd.h"
#include "sys/message_socket.h"

namespace soma::runtime {

struct ControlConnection::State {
  State(aio::Loop& owner, Fd connected)
      : loop(owner), socket(std::move(connected)), changed(owner) {}

  aio::Loop& loop;
  Fd socket;
  control::Client client;
  std::map<std::uint32_t, std::optional<Answer>> waiting;
  std::optional<control::SandboxStatus> last_event;
  aio::Condition changed;
  bool alive = true;

  void Die() {
    if (!alive) return;
    alive = false;
    // Not closed here: the pump may be waiting on it. The peer sees the end at once.
    ::shutdown(socket.get(), SHUT_RDWR);
    changed.NotifyAll();
  }

  void Take(ByteView packet, std::vector<Fd> descriptors) {
    auto reply = client.Receive(packet, descriptors.size());
    if (!reply) {
      Die();
      return;
    }
    if (reply->sequence == 0) {
      last_event = reply->status;
    } else if (const auto found = waiting.find(reply->sequence); found != waiting.end()) {
      found->second = Answer{.reply = *std::move(reply), .descriptors = std::move(descriptors)};
    }
    changed.NotifyAll();
  }
};

Fd ControlConnection::Answer::Take(control::DescriptorKind kind) {
  for (std::size_t i = 0; i < descriptors.size() && i < reply.descriptor_count; ++i) {
    if (reply.descriptors[i] == kind && descriptors[i]) return std::move(descriptors[i]);
  }
  return {};
}

ControlConnection::ControlConnection(aio::Loop& loop, Fd socket)
    : state_(std::make_shared<State>(loop, std::move(socket))) {
  loop.SpawnRoot(Pump(state_));
}

ControlConnection::~ControlConnection() { state_->Die(); }

bool ControlConnection::alive() const { return state_->alive; }

std::optional<control::SandboxStatus> ControlConnection::last_event() const {
  return state_->last_event;
}

aio::Job ControlConnection::Pump(std::shared_ptr<State> state) {
  while (state->alive) {
    const auto readable =
        co_await aio::WaitReadable(state->loop, state->socket.get(), std::chrono::hours(1));
    if (!readable) state->Die();
    if (!readable || !*readable || !state->alive) continue;
    std::array<std::uint8_t, control::kMessageBytes> packet{};
    auto received = sys::ReceivePacket(state->socket, packet, control::kDescriptorsMax);
    if (!received && received.error().errno_value() == EAGAIN) continue;
    if (!received || received->size == 0) {
      state->Die();
    } else {
      state->Take(ByteView(packet).first(received->size), std::move(received->descriptors));
    }
  }
}

aio::Task<ControlConnection::Answer> ControlConnection::Ask(control::Request request,
                                                            std::chrono::nanoseconds timeout) {
  const std::shared_ptr<State> state = state_;
  if (!state->alive) co_return Fail(Errc::kUnavailable, "the launcher is gone");
  SOMA_CO_ASSIGN(const auto asked, state->client.Ask(std::move(request)));
  state->waiting.emplace(asked.sequence, std::nullopt);
  const Status sent = sys::SendPacket(state->socket, asked.packet);
  if (!sent) {
    state->waiting.erase(asked.sequence);
    co_return std::unexpected(sent.error());
  }
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!state->waiting[asked.sequence] && state->alive) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) break;
    co_await state->changed.Wait(left);
  }
  std::optional<Answer> answer = std::move(state->waiting[asked.sequence]);
  state->waiting.erase(asked.sequence);
  if (answer && answer->reply.ok) co_return *std::move(answer);
  if (answer) co_return Fail(answer->reply.code, EscapeForTerminal(answer->reply.detail));
  if (!state->alive) co_return Fail(Errc::kUnavailable, "the launcher is gone");
  co_return Fail(Errc::kDeadlineExceeded, "the launcher does not answer");
}

aio::Task<void> ControlConnection::WaitOver(std::chrono::nanoseconds timeout) {
  const std::shared_ptr<State> state = state_;
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (state->alive && !(state->last_event && control::IsOver(state->last_event->state))) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) {
      co_return Fail(Errc::kDeadlineExceeded, "the sandbox still lives");
    }
    co_await state->changed.Wait(left);
  }
  co_return Status();
}

Result<Fd> ConnectControl(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(Errc::kInvalidArgument, "the launcher's socket has too long a path");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(Error::FromErrno(errno, "socket"));
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), raw, sizeof address) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ECONNREFUSED || error == EAGAIN) {
      return Fail(Errc::kUnavailable,
                  StrCat("no launcher answers at ", path, ": ", ErrnoName(error)));
    }
    return std::unexpected(Error::FromErrno(error, StrCat("connecting to ", path)));
  }
  return socket;
}

}  // namespace soma::runtime
