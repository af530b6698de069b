// SPDX-License-Identifier: Apache-2.0
#include "sys/netlink_request.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "sys/fd.h"

namespace soma::sys {

void NetlinkRequest::PutRaw(const void* bytes, std::size_t size) noexcept {
  const std::size_t aligned = NLMSG_ALIGN(size);
  if (overflow_ || aligned > sizeof buffer_ - size_) {
    overflow_ = true;
    return;
  }
  std::memcpy(buffer_ + size_, bytes, size);
  size_ += aligned;
}

void NetlinkRequest::FinishMessage() noexcept {
  if (!open_ || overflow_) return;
  const auto length = static_cast<std::uint32_t>(size_ - message_);
  std::memcpy(buffer_ + message_ + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
  open_ = false;
}

void NetlinkRequest::Begin(std::uint16_t type, std::uint16_t flags) noexcept {
  FinishMessage();
  message_ = size_;
  open_ = true;
  if ((flags & NLM_F_ACK) != 0) ++answers_;
  Put(nlmsghdr{.nlmsg_len = 0,
               .nlmsg_type = type,
               .nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST),
               .nlmsg_seq = ++sequence_,
               .nlmsg_pid = 0});
}

void NetlinkRequest::Attribute(std::uint16_t type, std::span<const std::uint8_t> value) noexcept {
  Put(nlattr{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + value.size()), .nla_type = type});
  PutRaw(value.data(), value.size());
}

void NetlinkRequest::Attribute(std::uint16_t type, std::string_view text) noexcept {
  std::uint8_t copy[32] = {};
  if (text.size() >= sizeof copy) {
    overflow_ = true;
    return;
  }
  std::memcpy(copy, text.data(), text.size());
  Attribute(type, {copy, text.size() + 1});
}

void NetlinkRequest::AttributeBe32(std::uint16_t type, std::uint32_t value) noexcept {
  AttributeRaw(type, htonl(value));
}

std::size_t NetlinkRequest::BeginNest(std::uint16_t type) noexcept {
  const std::size_t nest = size_;
  Put(nlattr{.nla_len = 0, .nla_type = static_cast<std::uint16_t>(type | NLA_F_NESTED)});
  return nest;
}

void NetlinkRequest::EndNest(std::size_t nest) noexcept {
  if (overflow_) return;
  const auto length = static_cast<std::uint16_t>(size_ - nest);
  std::memcpy(buffer_ + nest + offsetof(nlattr, nla_len), &length, sizeof length);
}

int NetlinkRequest::Send(int protocol) noexcept {
  FinishMessage();
  if (overflow_) return EMSGSIZE;
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket) return errno;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const ssize_t sent = ::sendto(socket.get(), buffer_, size_, 0,
                                reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) return errno;
  return AwaitAnswers(socket.get());
}

int NetlinkRequest::AwaitAnswers(int socket) noexcept {
  alignas(NLMSG_ALIGNTO) std::uint8_t answer[8192];
  while (answers_ > 0) {
    const ssize_t got = ::recv(socket, answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    auto left = static_cast<std::uint32_t>(got);
    for (auto* header = reinterpret_cast<nlmsghdr*>(answer); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type != NLMSG_ERROR) continue;
      const auto* const error = static_cast<const nlmsgerr*>(NLMSG_DATA(header));
      if (error->error != 0) return -error->error;
      if (answers_ > 0) --answers_;
    }
  }
  return 0;
}

}  // namespace soma::sys
