// SPDX-License-Identifier: Apache-2.0
#include "parse/connect.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace soma::parse {
namespace {

TEST(ConnectEnvelope, ReadsWhatItWrites) {
  const std::string body = WriteEnvelope(0, R"({"a":1})");
  EXPECT_EQ(body.size(), kConnectHeaderSize + 7);
  EXPECT_EQ(ReadOnlyEnvelope(body).value(), R"({"a":1})");
  EXPECT_EQ(WriteEnvelope(kConnectEndStream, "{}"), std::string_view("\x02\0\0\0\x02{}", 7));
}

TEST(ConnectEnvelope, RefusesCutDoubleCompressedAndOversized) {
  const std::string body = WriteEnvelope(0, "{}");
  EXPECT_FALSE(ReadOnlyEnvelope(""));
  EXPECT_FALSE(ReadOnlyEnvelope(body.substr(0, 6)));
  EXPECT_FALSE(ReadOnlyEnvelope(body + body));
  EXPECT_FALSE(ReadOnlyEnvelope(WriteEnvelope(kConnectCompressed, "{}")));
  EXPECT_FALSE(ReadOnlyEnvelope(WriteEnvelope(kConnectEndStream, "{}")));
  EXPECT_FALSE(ReadOnlyEnvelope(std::string_view("\0\xff\xff\xff\xff{}", 7)));
}

TEST(ConnectCode, HasTheProtocolsStatus) {
  EXPECT_EQ(ConnectCodeFor(Errc::kCancelled).name, "canceled");
  EXPECT_EQ(ConnectCodeFor(Errc::kNotFound).status, 404);
}

}  // namespace
}  // namespace soma::parse
