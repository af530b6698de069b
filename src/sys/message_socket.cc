// SPDX-License-Identifier: Apache-2.0
#include "sys/message_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

Result<SocketPair> MakeSocketPair(int type) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(Error::FromErrno(errno, "socketpair"));
  }
  return SocketPair{Fd(ends[0]), Fd(ends[1])};
}

int SendPacketRaw(int socket, std::span<const std::uint8_t> bytes,
                  std::span<const int> descriptors) noexcept {
  SOMA_CHECK(descriptors.size() <= kPacketDescriptorsMax);
  iovec part{.iov_base = const_cast<std::uint8_t*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPacketDescriptorsMax)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

Status SendPacket(const Fd& socket, std::span<const std::uint8_t> bytes,
                  std::span<const int> descriptors) {
  const int error = SendPacketRaw(socket.get(), bytes, descriptors);
  if (error != 0) return std::unexpected(Error::FromErrno(error, "sendmsg"));
  return {};
}

namespace {
void TakeDescriptors(msghdr& message, std::vector<Fd>& out) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int raw = -1;
      std::memcpy(&raw, CMSG_DATA(header) + i * sizeof(int), sizeof raw);
      out.emplace_back(raw);
    }
  }
}
}  // namespace

Result<ReceivedPacket> ReceivePacket(const Fd& socket, std::span<std::uint8_t> buffer,
                                     std::size_t descriptors_max) {
  SOMA_CHECK(descriptors_max <= kPacketDescriptorsMax);
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPacketDescriptorsMax)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == ECONNRESET) return ReceivedPacket{};  // it died with unread packets
  if (size < 0) return std::unexpected(Error::FromErrno(errno, "recvmsg"));
  ReceivedPacket packet;
  packet.size = static_cast<std::size_t>(size);
  TakeDescriptors(message, packet.descriptors);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      packet.descriptors.size() > descriptors_max) {
    return Fail(Errc::kOutOfRange, "recvmsg: a packet beyond its bounds");
  }
  return packet;
}

}  // namespace soma::sys
