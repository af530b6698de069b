// SPDX-License-Identifier: Apache-2.0
#include "walls/capture.h"

// Before linux/netfilter.h, which else brings its own in_addr.
#include <netinet/in.h>

#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sys/fd.h"
#include "sys/netlink_request.h"

namespace soma::walls {
namespace {

// The addresses that programs inside see as their own when they speak to the outside: documentation
// ranges (RFC 5737, RFC 3849), so they can't be confused with anything that is there.
constexpr std::uint8_t kSource4[4] = {192, 0, 2, 1};
constexpr std::uint8_t kSource6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr std::uint8_t kLoopback6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

constexpr std::uint32_t kLoopbackIndex = 1;  // the first interface of every network namespace
constexpr std::uint16_t kListenPort = 1;     // tcpmux (RFC 1078): no program of today wants it
constexpr std::uint16_t kDnsPort = 53;

using Address = std::span<const std::uint8_t>;

void AddAddress(sys::NetlinkRequest& request, std::uint8_t family, Address address) {
  request.Begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK);
  request.Put(
      ifaddrmsg{.ifa_family = family,
                .ifa_prefixlen = static_cast<std::uint8_t>(address.size() * 8),
                .ifa_flags = static_cast<std::uint8_t>(family == AF_INET6 ? IFA_F_NODAD : 0),
                .ifa_scope = RT_SCOPE_UNIVERSE,
                .ifa_index = kLoopbackIndex});
  request.Attribute(IFA_LOCAL, address);
  request.Attribute(IFA_ADDRESS, address);
}

// "ip route add local default dev lo src ADDRESS": every address there is, is this machine.
void AddRoute(sys::NetlinkRequest& request, std::uint8_t family, Address source) {
  request.Begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK);
  request.Put(rtmsg{.rtm_family = family,
                    .rtm_table = RT_TABLE_LOCAL,
                    .rtm_protocol = RTPROT_BOOT,
                    .rtm_scope = RT_SCOPE_HOST,
                    .rtm_type = RTN_LOCAL});
  request.AttributeRaw(RTA_OIF, kLoopbackIndex);
  request.Attribute(RTA_PREFSRC, source);
}

int RouteEverythingHere() {
  sys::NetlinkRequest request;
  AddAddress(request, AF_INET, kSource4);
  AddAddress(request, AF_INET6, kSource6);
  AddRoute(request, AF_INET, kSource4);
  AddRoute(request, AF_INET6, kSource6);
  return request.Send(NETLINK_ROUTE);
}

// One nftables rule, expression by expression, as `nft --debug=netlink` shows them.
class Rule {
 public:
  Rule(sys::NetlinkRequest& request, std::uint8_t family) : request_(request), family_(family) {}

  void Batch(std::uint16_t type) {
    request_.Begin(type, 0);
    request_.Put(nfgenmsg{
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)});
  }

  void Table() {
    Begin(NFT_MSG_NEWTABLE, NLM_F_CREATE);
    request_.Attribute(NFTA_TABLE_NAME, kName);
  }

  void Chain() {
    constexpr std::int32_t kPriorityMangle = -150;  // NF_IP_PRI_MANGLE
    Begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    request_.Attribute(NFTA_CHAIN_TABLE, kName);
    request_.Attribute(NFTA_CHAIN_NAME, kName);
    const std::size_t hook = request_.BeginNest(NFTA_CHAIN_HOOK);
    request_.AttributeBe32(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    request_.AttributeBe32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(kPriorityMangle));
    request_.EndNest(hook);
    request_.Attribute(NFTA_CHAIN_TYPE, "filter");
  }

  void BeginRule() {
    Begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    request_.Attribute(NFTA_RULE_TABLE, kName);
    request_.Attribute(NFTA_RULE_CHAIN, kName);
    expressions_ = request_.BeginNest(NFTA_RULE_EXPRESSIONS);
  }
  void EndRule() { request_.EndNest(expressions_); }

  void ProtocolIs(std::uint8_t protocol) {
    const auto [element, data] = Expression("meta");
    request_.AttributeBe32(NFTA_META_DREG, NFT_REG_1);
    request_.AttributeBe32(NFTA_META_KEY, NFT_META_L4PROTO);
    End(element, data);
    Compare(NFT_CMP_EQ, {&protocol, 1});
  }

  // The bytes at `offset` of a header are not `value`.
  void HeaderIsNot(std::uint32_t base, std::uint32_t offset, Address value) {
    const auto [element, data] = Expression("payload");
    request_.AttributeBe32(NFTA_PAYLOAD_DREG, NFT_REG_1);
    request_.AttributeBe32(NFTA_PAYLOAD_BASE, base);
    request_.AttributeBe32(NFTA_PAYLOAD_OFFSET, offset);
    request_.AttributeBe32(NFTA_PAYLOAD_LEN, static_cast<std::uint32_t>(value.size()));
    End(element, data);
    Compare(NFT_CMP_NEQ, value);
  }

  void RedirectTo(std::uint16_t port) {
    const std::uint16_t wire = htons(port);
    const auto [immediate, loaded] = Expression("immediate");
    request_.AttributeBe32(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    Value(NFTA_IMMEDIATE_DATA, {reinterpret_cast<const std::uint8_t*>(&wire), sizeof wire});
    End(immediate, loaded);
    const auto [element, data] = Expression("tproxy");
    request_.AttributeBe32(NFTA_TPROXY_FAMILY, family_);
    request_.AttributeBe32(NFTA_TPROXY_REG_PORT, NFT_REG_1);
    End(element, data);
  }

 private:
  static constexpr const char* kName = "soma";

  void Begin(std::uint16_t type, std::uint16_t flags) {
    request_.Begin(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type),
                   static_cast<std::uint16_t>(flags | NLM_F_ACK));
    request_.Put(nfgenmsg{.nfgen_family = family_, .version = NFNETLINK_V0, .res_id = 0});
  }
  std::pair<std::size_t, std::size_t> Expression(const char* name) {
    const std::size_t element = request_.BeginNest(NFTA_LIST_ELEM);
    request_.Attribute(NFTA_EXPR_NAME, name);
    return {element, request_.BeginNest(NFTA_EXPR_DATA)};
  }
  void End(std::size_t element, std::size_t data) {
    request_.EndNest(data);
    request_.EndNest(element);
  }
  void Value(std::uint16_t type, Address value) {
    const std::size_t nest = request_.BeginNest(type);
    request_.Attribute(NFTA_DATA_VALUE, value);
    request_.EndNest(nest);
  }
  void Compare(std::uint32_t operation, Address value) {
    const auto [element, data] = Expression("cmp");
    request_.AttributeBe32(NFTA_CMP_SREG, NFT_REG_1);
    request_.AttributeBe32(NFTA_CMP_OP, operation);
    Value(NFTA_CMP_DATA, value);
    End(element, data);
  }

  sys::NetlinkRequest& request_;
  std::uint8_t family_;
  std::size_t expressions_ = 0;
};

// Every TCP segment that isn't for the loopback, our own source address or DNS goes to the
// listener, and keeps its address (getsockname of the accepted socket).
void AddFamily(sys::NetlinkRequest& request, std::uint8_t family) {
  constexpr std::uint32_t kDestination4 = 16;  // offset in the IPv4 header, RFC 791
  constexpr std::uint32_t kDestination6 = 24;  // in the IPv6 header, RFC 8200
  constexpr std::uint32_t kDestinationPort = 2;
  constexpr std::uint8_t kLoopback4[1] = {127};
  const std::uint16_t dns = htons(kDnsPort);
  Rule rule(request, family);
  rule.Table();
  rule.Chain();
  rule.BeginRule();
  rule.ProtocolIs(IPPROTO_TCP);
  if (family == NFPROTO_IPV4) {
    rule.HeaderIsNot(NFT_PAYLOAD_NETWORK_HEADER, kDestination4, kLoopback4);
    rule.HeaderIsNot(NFT_PAYLOAD_NETWORK_HEADER, kDestination4, kSource4);
  } else {
    rule.HeaderIsNot(NFT_PAYLOAD_NETWORK_HEADER, kDestination6, kLoopback6);
    rule.HeaderIsNot(NFT_PAYLOAD_NETWORK_HEADER, kDestination6, kSource6);
  }
  rule.HeaderIsNot(NFT_PAYLOAD_TRANSPORT_HEADER, kDestinationPort,
                   {reinterpret_cast<const std::uint8_t*>(&dns), sizeof dns});
  rule.RedirectTo(kListenPort);
  rule.EndRule();
}

int CatchConnections() {
  sys::NetlinkRequest request;
  Rule(request, NFPROTO_UNSPEC).Batch(NFNL_MSG_BATCH_BEGIN);
  AddFamily(request, NFPROTO_IPV4);
  AddFamily(request, NFPROTO_IPV6);
  Rule(request, NFPROTO_UNSPEC).Batch(NFNL_MSG_BATCH_END);
  return request.Send(NETLINK_NETFILTER);
}

struct SocketWish {
  int family;
  int type;
  std::uint16_t port;
  bool transparent;  // may accept what is addressed to others
};

// A descriptor or a negative errno.
int OpenSocket(const SocketWish& wish) {
  Fd socket(::socket(wish.family, wish.type | SOCK_CLOEXEC, 0));
  if (!socket) return -errno;
  const int on = 1;
  const int level = wish.family == AF_INET6 ? SOL_IPV6 : SOL_IP;
  if (wish.family == AF_INET6 &&
      ::setsockopt(socket.get(), SOL_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) {
    return -errno;
  }
  const int transparent = wish.family == AF_INET6 ? IPV6_TRANSPARENT : IP_TRANSPARENT;
  if (wish.transparent && ::setsockopt(socket.get(), level, transparent, &on, sizeof on) != 0) {
    return -errno;
  }
  // A query may go to any address; the answer must come from that one.
  if (wish.type == SOCK_DGRAM &&
      ::setsockopt(socket.get(), SOL_IP, IP_PKTINFO, &on, sizeof on) != 0) {
    return -errno;
  }
  sockaddr_in6 address6{};
  sockaddr_in address4{};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = address4.sin_port = htons(wish.port);
  address4.sin_family = AF_INET;
  const bool six = wish.family == AF_INET6;
  const auto* const address = six ? reinterpret_cast<const sockaddr*>(&address6)
                                  : reinterpret_cast<const sockaddr*>(&address4);
  if (::bind(socket.get(), address, six ? sizeof address6 : sizeof address4) != 0) return -errno;
  if (wish.type == SOCK_STREAM && ::listen(socket.get(), SOMAXCONN) != 0) return -errno;
  return socket.Release();
}

}  // namespace

int OpenCapture(int (&sockets)[4]) noexcept {
  int done = RouteEverythingHere();
  if (done == 0) done = CatchConnections();
  if (done != 0) return done;
  constexpr SocketWish kWishes[] = {{AF_INET, SOCK_STREAM, kListenPort, true},
                                    {AF_INET6, SOCK_STREAM, kListenPort, true},
                                    {AF_INET, SOCK_DGRAM, kDnsPort, false},
                                    {AF_INET, SOCK_STREAM, kDnsPort, false}};
  for (std::size_t i = 0; i < std::size(kWishes); ++i) {
    sockets[i] = OpenSocket(kWishes[i]);
    if (sockets[i] < 0) return -sockets[i];
  }
  return 0;
}

}  // namespace soma::walls
