// SPDX-License-Identifier: Apache-2.0
#include "walls/socket_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace soma::walls {
namespace {

template <typename T>
ByteView View(const T& address, std::size_t size = sizeof(T)) {
  return {reinterpret_cast<const std::uint8_t*>(&address), size};
}

sockaddr_in6 V6(const char* text) {
  sockaddr_in6 address{.sin6_family = AF_INET6, .sin6_port = htons(443)};
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return address;
}

std::string Text(ByteView raw) {
  const auto address = DecodeSocketAddress(raw);
  return address ? AddressText(*address) : "nothing";
}

TEST(DecodeSocketAddress, ReadsInternetAddresses) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(80)};
  ASSERT_EQ(::inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr), 1);
  EXPECT_EQ(Text(View(v4)), "192.0.2.1:80");
  EXPECT_EQ(Text(View(v4, 8)), "nothing");
  EXPECT_EQ(Text(View(V6("2001:db8::1"))), "[2001:db8::1]:443");
  EXPECT_EQ(Text(View(V6("2001:db8::1"), 24)), "[2001:db8::1]:443")
      << "the short form is taken too";
  EXPECT_EQ(Text(View(V6("2001:db8::1"), 23)), "nothing");
  EXPECT_EQ(Text(View(V6("::ffff:10.0.0.1"))), "10.0.0.1:443") << "mapped is the v4 address";
}

TEST(DecodeSocketAddress, ReadsUnixAddresses) {
  sockaddr_un path{.sun_family = AF_UNIX};
  constexpr std::string_view kPath = "/run/x.sock";
  std::memcpy(path.sun_path, kPath.data(), kPath.size());
  EXPECT_EQ(Text(View(path)), "/run/x.sock");
  EXPECT_EQ(Text(View(path, offsetof(sockaddr_un, sun_path) + 4)), "/run") << "cut by the length";
  EXPECT_EQ(Text(View(path, offsetof(sockaddr_un, sun_path))), "unnamed unix socket");
  path.sun_path[0] = '\0';
  EXPECT_EQ(Text(View(path, offsetof(sockaddr_un, sun_path) + 4)), "@run");
}

TEST(DecodeSocketAddress, NamesOtherFamiliesAndRefusesOversize) {
  const std::uint16_t family = AF_VSOCK;
  EXPECT_EQ(Text(View(family)), "address family 40");
  EXPECT_EQ(Text(View(family, 1)), "nothing");
  const std::uint8_t large[129] = {AF_INET};
  EXPECT_EQ(Text({large, sizeof large}), "nothing");
}

}  // namespace
}  // namespace soma::walls
