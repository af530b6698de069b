// SPDX-License-Identifier: Apache-2.0
// NetlinkRequest: builds a few netlink messages in a buffer of its own, sends them, and reads every
// answer. For between fork and exec: allocates nothing. Source: netlink(7), rtnetlink(7),
// linux/netfilter/nfnetlink.h.
#ifndef SOMA_SYS_NETLINK_REQUEST_H_
#define SOMA_SYS_NETLINK_REQUEST_H_

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace soma::sys {

class NetlinkRequest {
 public:
  // Starts a message; `flags` beyond NLM_F_REQUEST. With NLM_F_ACK its answer is waited for.
  void Begin(std::uint16_t type, std::uint16_t flags) noexcept;
  // The fixed part that follows the header.
  template <typename T>
  void Put(const T& fixed) noexcept {
    PutRaw(&fixed, sizeof fixed);
  }
  void Attribute(std::uint16_t type, std::span<const std::uint8_t> value) noexcept;
  void Attribute(std::uint16_t type, std::string_view text) noexcept;  // with its NUL
  void AttributeBe32(std::uint16_t type, std::uint32_t value) noexcept;
  template <typename T>
  void AttributeRaw(std::uint16_t type, const T& value) noexcept {
    Attribute(type, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
  }
  // Attributes until EndNest are inside this one.
  std::size_t BeginNest(std::uint16_t type) noexcept;
  void EndNest(std::size_t nest) noexcept;

  // Sends all messages over a new socket of `protocol` (NETLINK_ROUTE …). 0, or the errno of the
  // first that the kernel refused; EMSGSIZE if they didn't fit.
  int Send(int protocol) noexcept;

 private:
  void PutRaw(const void* bytes, std::size_t size) noexcept;
  void FinishMessage() noexcept;
  int AwaitAnswers(int socket) noexcept;

  alignas(NLMSG_ALIGNTO) std::uint8_t buffer_[4096] = {};
  std::size_t size_ = 0;
  std::size_t message_ = 0;  // where the current one begins
  bool open_ = false;
  bool overflow_ = false;
  std::uint32_t sequence_ = 0;
  std::uint32_t answers_ = 0;  // still to come
};

}  // namespace soma::sys

#endif  // SOMA_SYS_NETLINK_REQUEST_H_
