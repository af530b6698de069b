// SPDX-License-Identifier: Apache-2.0
// What the supervisor reads from a task's memory: socket addresses and paths.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "walls/lexical_path.h"
#include "walls/socket_address.h"

namespace {

bool IsClean(std::string_view path) {
  return path.starts_with('/') && (path == "/" || !path.ends_with('/')) &&
         path.find("//") == std::string_view::npos && !path.contains("/../") &&
         !path.contains("/./") && !path.ends_with("/..") && !path.ends_with("/.");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const soma::ByteView raw(data, size);
  if (const auto address = soma::walls::DecodeSocketAddress(raw)) {
    const std::string text = soma::walls::AddressText(*address);
    SOMA_CHECK(size <= soma::walls::kSocketAddressBytesMax);
    SOMA_CHECK(text.size() <= size + 64);
  }
  const std::string_view path = soma::AsText(raw);
  const std::size_t half = path.size() / 2;
  SOMA_CHECK(IsClean(soma::walls::JoinLexically(path.substr(0, half), path.substr(half))));
  const soma::walls::ParentAndName parts = soma::walls::SplitPath(path);
  SOMA_CHECK(parts.name.find('/') == std::string::npos);
  SOMA_CHECK(parts.parent.size() + parts.name.size() <= path.size());
  return 0;
}
