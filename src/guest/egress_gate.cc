// SPDX-License-Identifier: Apache-2.0
#include "guest/egress_gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "guest/loop.h"
#include "guest/outward.h"
#include "guest/splice.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

constexpr std::uint16_t kDnsPort = 53;
constexpr int kAcceptedAtOnce = 16;  // then other work has its turn

// Where a caught connection was meant to go: the local name of the accepted socket.
std::optional<wire::Open> Destination(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return std::nullopt;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  wire::Open open;
  const void* raw = nullptr;
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    open.port = ntohs(v4->sin_port);
    raw = &v4->sin_addr;
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    open.port = ntohs(v6->sin6_port);
    raw = &v6->sin6_addr;
  }
  if (::inet_ntop(address.ss_family, raw, text.data(), text.size()) == nullptr) {
    return std::nullopt;
  }
  open.host = text.data();
  return open;
}

struct Query {
  QueryOrigin origin;
  Bytes bytes;
};

std::optional<Query> ReceiveQuery(const Fd& socket) {
  Query query{.bytes = Bytes(wire::kDatagramMax)};
  iovec content{.iov_base = query.bytes.data(), .iov_len = query.bytes.size()};
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr header{.msg_name = &query.origin.client,
                .msg_namelen = sizeof query.origin.client,
                .msg_iov = &content,
                .msg_iovlen = 1,
                .msg_control = control.data(),
                .msg_controllen = control.size()};
  const ssize_t got = ::recvmsg(socket.get(), &header, MSG_DONTWAIT);
  if (got <= 0 || (header.msg_flags & MSG_TRUNC) != 0) return std::nullopt;
  query.bytes.resize(static_cast<std::size_t>(got));
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != IPPROTO_IP || item->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(item), sizeof info);
    query.origin.asked = info.ipi_addr;
  }
  return query;
}

}  // namespace

Status EgressGate::Serve(CaptureListeners listeners) {
  listeners_ = std::move(listeners);
  const std::array<const Fd*, 4> fds = {&listeners_.tcp4, &listeners_.tcp6, &listeners_.dns_udp4,
                                        &listeners_.dns_tcp4};
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const Fd& fd = *fds[i];
    if (!fd) continue;
    if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
      return std::unexpected(Error::FromErrno(errno, "preparing a listener"));
    }
    const bool is_query = &fd == &listeners_.dns_udp4;
    SOMA_ASSIGN(registrations_[i], loop_.Add(fd, EPOLLIN, [this, &fd, is_query](std::uint32_t) {
      is_query ? OnQuery() : OnConnection(fd);
    }));
  }
  return {};
}

void EgressGate::OnConnection(const Fd& listener) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const auto destination = Destination(socket);
    const bool may = destination && session_.own_channel_count() < kOpenMax;
    const auto channel = may ? session_.Request(*destination)
                             : Fail(Errc::kResourceExhausted, "too many connections");
    if (!channel) {
      ResetOnClose(socket);
      continue;
    }
    keep_(*channel,
          std::make_unique<OutwardConnection>(loop_, session_, *channel, std::move(socket)));
  }
}

void EgressGate::OnQuery() {
  while (auto query = ReceiveQuery(listeners_.dns_udp4)) {
    if (session_.own_channel_count() >= kOpenMax) continue;
    const auto channel =
        session_.Request(wire::Datagram{.port = kDnsPort, .bytes = std::move(query->bytes)});
    if (!channel) continue;
    keep_(*channel,
          std::make_unique<OutwardQuery>(session_, *channel, listeners_.dns_udp4, query->origin));
  }
}

}  // namespace soma::guest
