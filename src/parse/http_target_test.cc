// SPDX-License-Identifier: Apache-2.0
#include "parse/http_target.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace soma::parse {
namespace {

TEST(HttpTarget, SplitsPathAndQuery) {
  const auto target = ParseTarget("/files?path=%2Fa+b&username=&x");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/files");
  EXPECT_EQ(*target->Find("path"), "/a b");
  EXPECT_EQ(*target->Find("username"), "");
  EXPECT_NE(target->Find("x"), nullptr);
  EXPECT_EQ(target->Find("y"), nullptr);
}

TEST(HttpTarget, RefusesOtherFormsAndBrokenEscapes) {
  EXPECT_FALSE(ParseTarget("http://host/x"));
  EXPECT_FALSE(ParseTarget("*"));
  EXPECT_FALSE(ParseTarget("/x?a=%4"));
  EXPECT_FALSE(PathSegments("/a/%zz"));
  EXPECT_FALSE(PathSegments("/a/%00"));
}

TEST(HttpTarget, SegmentsAreDecodedOnce) {
  EXPECT_EQ(PathSegments("/templates/team%2Fsnap%3Adefault/").value(),
            (std::vector<std::string>{"templates", "team/snap:default"}));
}

TEST(MetadataFilter, IsDecodedThreeTimesInAll) {
  const auto target = ParseTarget("/v2/sandboxes?metadata=k%2525201%3Dv%2525262");
  ASSERT_TRUE(target);
  const auto pairs = ParseMetadataFilter(*target->Find("metadata"));
  ASSERT_TRUE(pairs);
  EXPECT_EQ(*pairs, (QueryPairs{{"k 1", "v&2"}}));
}

TEST(Host, ParsesNamesAddressesAndPorts) {
  EXPECT_EQ(ParseHost("LocalHost:3000")->host, "localhost");
  EXPECT_EQ(ParseHost("LocalHost:3000")->port, 3000);
  EXPECT_EQ(ParseHost("[::1]:80")->host, "::1");
  EXPECT_FALSE(ParseHost("a b"));
  EXPECT_FALSE(ParseHost("host:99999"));
  EXPECT_FALSE(ParseHost(""));
  EXPECT_FALSE(ParseHost("[::1"));
  EXPECT_FALSE(ParseHost("evil.com@localhost"));
}

TEST(Host, KnowsItsOwnMachine) {
  for (const char* host : {"localhost", "x.localhost", "127.0.0.1", "127.9.9.9", "::1"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"localhost.evil.com", "127.0.0.1.nip.io", "10.0.0.1", "notlocalhost"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(SandboxHost, NamesPortAndSandbox) {
  const auto found = ParseSandboxHost("8080-iabc123.e2b.localhost");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->port, 8080);
  EXPECT_EQ(found->sandbox_id, "iabc123");
  EXPECT_EQ(ParseSandboxHost("8080-iabc-client.x")->sandbox_id, "iabc");
  for (const char* host : {"8080-iabc", "0-iabc.x", "70000-i.x", "a-i.x", "api.x", "80-.x"}) {
    EXPECT_FALSE(ParseSandboxHost(host)) << host;
  }
}

}  // namespace
}  // namespace soma::parse
