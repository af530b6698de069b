// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "parse/dns.h"
#include "sys/fd.h"

namespace soma::egress {

namespace {
using Control = std::array<std::uint8_t, CMSG_SPACE(sizeof(in_pktinfo))>;
}  // namespace

std::optional<ReceivedQuery> ReceiveQuery(const Fd& socket) {
  ReceivedQuery query;
  query.message.resize(parse::kDnsMessageBytesMax);
  iovec part{query.message.data(), query.message.size()};
  alignas(cmsghdr) Control control{};
  msghdr header{};
  header.msg_name = &query.from;
  header.msg_namelen = sizeof query.from;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket.get(), &header, MSG_DONTWAIT);
  if (size < 0) return std::nullopt;
  // A longer one than we read is no query that we know; cut, the parser refuses
  // it.
  query.message.resize(static_cast<std::size_t>(size));
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != IPPROTO_IP || at->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info;
    std::memcpy(&info, CMSG_DATA(at), sizeof info);
    query.to = info.ipi_addr;
  }
  return query;
}

void SendAnswer(const Fd& socket, const ReceivedQuery& query, ByteView answer) {
  iovec part{const_cast<std::uint8_t*>(answer.data()), answer.size()};
  alignas(cmsghdr) Control control{};
  sockaddr_in to = query.from;
  msghdr header{};
  header.msg_name = &to;
  header.msg_namelen = sizeof to;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* source = CMSG_FIRSTHDR(&header);
  source->cmsg_level = IPPROTO_IP;
  source->cmsg_type = IP_PKTINFO;
  source->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_spec_dst = query.to;
  std::memcpy(CMSG_DATA(source), &info, sizeof info);
  (void)::sendmsg(socket.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace soma::egress
