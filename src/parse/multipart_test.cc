// SPDX-License-Identifier: Apache-2.0
#include "parse/multipart.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace soma::parse {
namespace {

struct Part {
  std::string name;
  std::string filename;
  std::string data;
  bool ended = false;
  friend bool operator==(const Part&, const Part&) = default;
};

struct Parsed {
  std::vector<Part> parts;
  std::string error;
  bool finished = false;
};

Parsed ReadInPieces(std::string_view body, std::size_t piece) {
  MultipartReader reader("B");
  Parsed parsed;
  for (std::size_t at = 0; at < body.size(); at += piece) {
    reader.Feed(body.substr(at, piece));
    while (auto event = reader.Next()) {
      if (event->kind == MultipartEvent::Kind::kPart) {
        parsed.parts.push_back({.name = event->name, .filename = event->filename, .data = {}});
      } else if (event->kind == MultipartEvent::Kind::kData) {
        parsed.parts.back().data += event->data;
      } else {
        parsed.parts.back().ended = true;
      }
    }
  }
  parsed.error = reader.error();
  parsed.finished = reader.finished();
  return parsed;
}

constexpr std::string_view kBody =
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a %22b\"\r\n"
    "Content-Type: x/y\r\n\r\none\r\n--\r\n--Btwo\r\n--B\r\n"
    "content-disposition: form-data; name=file; filename=\"c\\\"d\"\r\n\r\n\r\n--B--\r\nrest";

TEST(Multipart, SplitsPartsHoweverTheBodyArrives) {
  // "\r\n--Btwo" is a delimiter followed by garbage: that must be an error, so it is taken out
  // here.
  std::string body(kBody);
  body.replace(body.find("\r\n--Btwo"), 8, "\r\n--Xtwo");
  for (std::size_t piece = 1; piece < body.size(); ++piece) {
    const Parsed parsed = ReadInPieces(body, piece);
    EXPECT_EQ(parsed.error, "");
    EXPECT_TRUE(parsed.finished);
    EXPECT_EQ(parsed.parts, (std::vector<Part>{{"file", "/a \"b", "one\r\n--\r\n--Xtwo", true},
                                               {"file", "c\"d", "", true}}));
  }
}

TEST(Multipart, RefusesBytesAfterADelimiter) { EXPECT_NE(ReadInPieces(kBody, 7).error, ""); }

TEST(Multipart, ACutBodyIsNotFinished) {
  const Parsed parsed = ReadInPieces("--B\r\nContent-Disposition: form-data\r\n\r\nabc", 5);
  EXPECT_FALSE(parsed.finished);
  EXPECT_EQ(parsed.error, "");
}

TEST(Multipart, BoundsAPartsHeader) {
  EXPECT_NE(ReadInPieces("--B\r\n" + std::string(20'000, 'x'), 1000).error, "");
}

TEST(MultipartBoundary, IsReadFromTheContentType) {
  EXPECT_EQ(MultipartBoundary("multipart/form-data; boundary=abc").value(), "abc");
  EXPECT_EQ(MultipartBoundary("Multipart/Form-Data; charset=x; boundary=\"a b\"").value(), "a b");
  EXPECT_FALSE(MultipartBoundary("multipart/form-data"));
  EXPECT_FALSE(MultipartBoundary("text/plain; boundary=a"));
  EXPECT_FALSE(MultipartBoundary("multipart/form-data; boundary=" + std::string(71, 'a')));
}

}  // namespace
}  // namespace soma::parse
