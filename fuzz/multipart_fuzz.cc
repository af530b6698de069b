// SPDX-License-Identifier: Apache-2.0
// The first byte says how the rest is cut into pieces: the parts must not depend on it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "parse/multipart.h"

namespace {

std::string Read(std::string_view body, std::size_t piece) {
  soma::parse::MultipartReader reader("B");
  std::string seen;
  for (std::size_t at = 0; at < body.size(); at += piece) {
    reader.Feed(body.substr(at, piece));
    while (const auto event = reader.Next()) {
      switch (event->kind) {
        case soma::parse::MultipartEvent::Kind::kPart:
          seen += "<" + event->filename + ">";
          break;
        case soma::parse::MultipartEvent::Kind::kData:
          seen += event->data;
          break;
        case soma::parse::MultipartEvent::Kind::kPartEnd:
          seen += "</>";
          break;
      }
    }
    if (!reader.error().empty()) return "error";
  }
  return reader.finished() ? seen : "cut";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 8192) return 0;
  const auto body = soma::AsText({data + 1, size - 1});
  SOMA_CHECK(Read(body, std::size_t{1} + data[0]) == Read(body, body.size()));
  return 0;
}
