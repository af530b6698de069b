// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"

#include <gtest/gtest.h>

#include <string>

#include "aio/http.h"

namespace soma::api {
namespace {

const GuardLists& Lists() {
  static const GuardLists lists{.hosts = {"soma.example"}, .origins = {"https://app.example"}};
  return lists;
}

aio::HttpHeaders With(const std::string& host, const char* origin = nullptr) {
  aio::HttpHeaders headers;
  headers.Add("Host", host);
  if (origin != nullptr) headers.Add("Origin", origin);
  return headers;
}

TEST(Guard, TakesThisMachinesNamesAddressesAndListedHosts) {
  for (const char* host : {"localhost:3000", "127.0.0.1", "[::1]:3000", "10.1.2.3:80",
                           "soma.example", "49983-i1.soma.example:443", "api.localhost"}) {
    EXPECT_TRUE(CheckHostAndOrigin(With(host), Lists())) << host;
  }
}

TEST(Guard, RefusesForeignHosts) {
  for (const char* host : {"", "evil.example", "xsoma.example", "soma.example.evil.org",
                           "localhost.evil.org", "127.0.0.1.nip.io", "soma.example@evil.org"}) {
    const auto status = CheckHostAndOrigin(With(host), Lists());
    ASSERT_FALSE(status) << host;
    EXPECT_NE(status.error().message().find("--host"), std::string::npos);
  }
  EXPECT_FALSE(CheckHostAndOrigin(aio::HttpHeaders(), Lists()));
}

TEST(Guard, RefusesOriginsThatAreNotListedExactly) {
  EXPECT_TRUE(CheckHostAndOrigin(With("localhost", "https://app.example"), Lists()));
  for (const char* origin : {"null", "", "http://app.example", "https://app.example:8443",
                             "https://app.example.evil.org", "http://localhost:3000"}) {
    EXPECT_FALSE(CheckHostAndOrigin(With("localhost", origin), Lists())) << origin;
  }
}

}  // namespace
}  // namespace soma::api
