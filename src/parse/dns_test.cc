// SPDX-License-Identifier: Apache-2.0
#include "parse/dns.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace soma::parse {
namespace {

Bytes Query(std::string_view wire_name, std::uint8_t type = 1) {
  Bytes out = {0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0};
  out.insert(out.end(), wire_name.begin(), wire_name.end());
  out.insert(out.end(), {0, 0, type, 0, 1});
  return out;
}

TEST(Dns, ReadsAQuestion) {
  const auto query = ParseDnsQuery(Query("\3wWw\7example\3com", 28));
  ASSERT_TRUE(query) << query.error().message();
  EXPECT_EQ(query->id, 0x1234);
  EXPECT_EQ(query->name, "www.example.com");
  EXPECT_EQ(query->type, kDnsTypeAaaa);
  EXPECT_EQ(query->class_number, kDnsClassInternet);
  EXPECT_TRUE(query->recursion_desired);
}

TEST(Dns, AnswersWithTheQuestionAsItWasSent) {
  const auto query = ParseDnsQuery(Query("\3wWw\1x"));
  ASSERT_TRUE(query);
  const Bytes answer = BuildDnsAnswer(
      *query, {.address = std::array<std::uint8_t, 4>{198, 18, 0, 7}, .ttl_seconds = 60});
  const Bytes expected = {0x12, 0x34, 0x81, 0x80, 0, 1,   0, 1, 0, 0,  0, 0,  // header
                          3,    'w',  'W',  'w',  1, 'x', 0, 0, 1, 0,  1,     // question
                          0xc0, 12,   0,    1,    0, 1,   0, 0, 0, 60, 0, 4, 198, 18, 0, 7};
  EXPECT_EQ(answer, expected);
}

TEST(Dns, ARefusalHasNoAddress) {
  const auto query = ParseDnsQuery(Query("\1x"));
  const Bytes answer = BuildDnsAnswer(
      *query, {.code = DnsCode::kNameError, .address = std::array<std::uint8_t, 4>{1, 2, 3, 4}});
  EXPECT_EQ(answer.size(), 12U + 3 + 4);
  EXPECT_EQ(answer[3] & 0x0f, 3);
  EXPECT_EQ(answer[7], 0);
}

TEST(Dns, BytesThatNoHostNameHasAreMarked) {
  const auto query = ParseDnsQuery(Query(std::string_view("\4a.b\0\1c", 7)));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->name, "a?b?.c");
}

TEST(Dns, RefusesEverythingElse) {
  EXPECT_FALSE(ParseDnsQuery({}));
  const Bytes good = Query("\1x");
  for (std::size_t keep = 0; keep < good.size(); ++keep) {
    EXPECT_FALSE(ParseDnsQuery(ByteView(good).first(keep))) << keep;
  }
  Bytes response = good;
  response[2] |= 0x80;
  EXPECT_FALSE(ParseDnsQuery(response));
  EXPECT_EQ(DnsIdOf(response), std::nullopt);
  Bytes two_questions = good;
  two_questions[5] = 2;
  EXPECT_FALSE(ParseDnsQuery(two_questions));
  EXPECT_EQ(DnsIdOf(two_questions), 0x1234);
  EXPECT_FALSE(ParseDnsQuery(Query("\xc0\x0c")));
  std::string long_name;
  for (int i = 0; i < 130; ++i) long_name += "\1a";
  EXPECT_FALSE(ParseDnsQuery(Query(long_name)));
}

}  // namespace
}  // namespace soma::parse
