// SPDX-License-Identifier: Apache-2.0
#include "walls/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>

#include "sys/message_socket.h"
#include "walls/step.h"

namespace soma::walls {

int SendPacket(int channel, const Packet& packet, std::span<const int> descriptors) noexcept {
  return sys::SendPacketRaw(
      channel, {reinterpret_cast<const std::uint8_t*>(&packet), sizeof packet}, descriptors);
}

bool ReceivePacket(int channel, Packet& packet) noexcept {
  ssize_t size = -1;
  do {
    size = ::recv(channel, &packet, sizeof packet, 0);
  } while (size < 0 && errno == EINTR);
  return size == static_cast<ssize_t>(sizeof packet);
}

void FailStep(int channel, const StepFailure& failure) noexcept {
  (void)SendPacket(channel, {.kind = PacketKind::kFailed,
                             .step = failure.step,
                             .item = failure.item,
                             .value = failure.errno_value});
  ::_exit(125);  // the exit code of container tools for their own failures
}

}  // namespace soma::walls
