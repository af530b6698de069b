// SPDX-License-Identifier: Apache-2.0
#include "guest/outward.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <utility>
#include <variant>

#include "base/error.h"
#include "guest/splice.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/protocol.h"
#include "wire/session.h"

namespace soma::guest {

OutwardConnection::~OutwardConnection() {
  if (waiting_) ResetOnClose(waiting_);
}

void OutwardConnection::OnReply(wire::Message& message) {
  if (std::holds_alternative<wire::Opened>(message) && waiting_) {
    if (!Begin(std::move(waiting_))) session().Abort(channel(), Errc::kResourceExhausted, {});
    return;
  }
  if (wire::IsTerminal(message)) return Stop();
  OnMessage(message);
}

void OutwardQuery::OnReply(wire::Message& message) {
  auto* reply = std::get_if<wire::DatagramReply>(&message);
  if (reply == nullptr) return;
  iovec content{.iov_base = reply->bytes.data(), .iov_len = reply->bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
  msghdr header{.msg_name = &origin_.client,
                .msg_namelen = sizeof origin_.client,
                .msg_iov = &content,
                .msg_iovlen = 1,
                .msg_control = control.data(),
                .msg_controllen = control.size()};
  cmsghdr* item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = IPPROTO_IP;
  item->cmsg_type = IP_PKTINFO;
  item->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  const in_pktinfo info{.ipi_ifindex = 0, .ipi_spec_dst = origin_.asked, .ipi_addr = {}};
  std::memcpy(CMSG_DATA(item), &info, sizeof info);
  static_cast<void>(::sendmsg(socket_.get(), &header, MSG_DONTWAIT));
}

}  // namespace soma::guest
