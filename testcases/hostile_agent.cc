// SPDX-License-Identifier: Apache-2.0
// hostile_agent: stands in for soma-guest where the agent itself is the attacker. What it does is
// the first line of /etc/mode in its root:
//   good       becomes the real agent, /soma-guest
//   mute       never answers the server's hello
//   silent     greets, then never reads or writes again
//   garbage    greets, then writes bytes without meaning
//   oversized  greets, then frames whose length says four gigabytes
//   endless    greets, then one message that never ends
//   streams    greets, then a million requests for connections out, each given up at once
//   crowd      greets, then requests that it leaves open
//   deaf       does as it is asked (nothing, but it says so), and ends no task but the first one
//   that
//              is given input, which copies the workspace; without a file /etc/mode too
// Whatever it writes, it writes as fast as it is read, until the server closes the wire; then it
// stays, as an attacker would.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/session.h"

namespace {

using soma::Bytes;
using soma::ByteView;
namespace wire = soma::wire;

constexpr int kWire = 3;

[[noreturn]] void Stay() {
  for (;;) pause();
}

void WriteAll(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(kWire, bytes.data(), bytes.size());
    if (size <= 0) Stay();
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
}

// Numbers its frames as the protocol wants them, whatever is in them.
class Attacker {
 public:
  // As a real agent, until the server has had its answer to Init.
  void Greet() {
    std::array<std::uint8_t, wire::kInputMax> buffer{};
    for (bool greeted = false; !greeted;) {
      const ssize_t size = read(kWire, buffer.data(), buffer.size());
      if (size <= 0) Stay();
      session_.OnBytes(ByteView(buffer).first(static_cast<std::size_t>(size)));
      while (auto event = session_.Next()) {
        if (event->kind == wire::SessionEvent::Kind::kEstablished) {
          (void)session_.Announce(wire::Identity{
              .agent = "soma-guest 0.1.0", .kernel_release = "6.1", .machine = "x86_64", .pid = 1});
        } else if (event->opens) {
          (void)session_.Reply(event->channel, wire::Ok{});
          greeted = std::holds_alternative<wire::Init>(event->message);
        }
      }
      Flush();
    }
  }

  [[noreturn]] void Agree() {
    std::array<std::uint8_t, wire::kInputMax> buffer{};
    std::optional<wire::ChannelId> copying;
    bool copied = false;
    for (;;) {
      const ssize_t size = read(kWire, buffer.data(), buffer.size());
      if (size <= 0) Stay();
      session_.OnBytes(ByteView(buffer).first(static_cast<std::size_t>(size)));
      while (auto event = session_.Next()) {
        if (!event->opens) continue;
        if (std::holds_alternative<wire::Start>(event->message)) {
          (void)session_.Reply(event->channel, wire::Started{.pid = 7});
          if (!copied) copying = event->channel;
        } else if (std::holds_alternative<wire::MakeDir>(event->message)) {
          (void)session_.Reply(event->channel, wire::Entry{});
        } else {
          (void)session_.Reply(event->channel, wire::Ok{});
        }
        if (copying && std::holds_alternative<wire::CloseStdin>(event->message)) {
          (void)session_.Reply(*copying, wire::Exit{});
          copying.reset();
          copied = true;
        }
      }
      Flush();
    }
  }

  void SendData(ByteView payload, bool more) {
    const wire::FrameHeader header{
        .type = wire::FrameType::kData,
        .flags = more ? wire::kFlagMore : std::uint16_t{0},
        .epoch = session_.epoch(),
        .length = static_cast<std::uint32_t>(payload.size()),
        .payload_sum = static_cast<std::uint32_t>(wire::Checksum(payload)),
        .sequence = next_++,
        .acknowledged = 0};
    WriteAll(wire::EncodeFrameHeader(header));
    WriteAll(payload);
  }

  void SendMessage(const wire::Envelope& envelope) {
    const auto bytes = wire::Encode(envelope);
    if (bytes) SendData(*bytes, false);
  }

  std::uint64_t epoch() const { return session_.epoch(); }

 private:
  void Flush() {
    for (ByteView out = session_.Output(); !out.empty(); out = session_.Output()) {
      Count(out);
      WriteAll(out);
      session_.Wrote(out.size());
    }
  }

  // Output gives whole frames as long as all of it is written.
  void Count(ByteView frames) {
    while (frames.size() >= wire::kFrameHeaderSize) {
      const auto header = wire::DecodeFrameHeader(frames);
      if (!header) return;
      if (header->type == wire::FrameType::kData) next_ = header->sequence + 1;
      frames = frames.subspan(
          std::min<std::size_t>(frames.size(), wire::kFrameHeaderSize + header->length));
    }
  }

  wire::Session session_{wire::Role::kGuest};
  std::uint64_t next_ = 0;
};

[[noreturn]] void Flood(Attacker& attacker, const std::string& mode) {
  const Bytes block(wire::kFramePayloadMax, 0x5a);
  wire::ChannelId channel = wire::kGuestChannelBit;
  for (;;) {
    if (mode == "garbage") {
      WriteAll(block);
    } else if (mode == "oversized") {
      WriteAll(wire::EncodeFrameHeader(
          {.type = wire::FrameType::kData, .epoch = attacker.epoch(), .length = 0xffffffff}));
    } else if (mode == "endless") {
      attacker.SendData(block, true);
    } else {
      ++channel;
      attacker.SendMessage(
          {.channel = channel, .message = wire::Open{.host = "192.0.2.1", .port = 9}});
      if (mode == "streams") attacker.SendMessage({.channel = channel, .message = wire::Reset{}});
    }
  }
}

std::string Mode() {
  char line[32] = {};
  std::FILE* file = std::fopen("/etc/mode", "re");
  if (file != nullptr && std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
  if (file != nullptr) (void)std::fclose(file);
  std::string mode = file == nullptr ? "deaf" : line;
  while (mode.ends_with('\n')) mode.pop_back();
  return mode;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const std::string mode = Mode();
  if (mode == "good") {
    execv("/soma-guest", argv);
    std::perror("/soma-guest");
    return 1;
  }
  signal(SIGPIPE, SIG_IGN);
  if (mode == "mute") Stay();
  Attacker attacker;
  attacker.Greet();
  if (mode == "silent") Stay();
  if (mode == "deaf") attacker.Agree();
  Flood(attacker, mode);
}
