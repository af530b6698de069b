// SPDX-License-Identifier: Apache-2.0
#include "egress/name_table.h"

#include <cstdint>
#include <optional>
#include <string>

namespace soma::egress {

namespace {
constexpr std::uint32_t kBase = 0xc6120000;  // 198.18.0.0
constexpr std::uint32_t kMask = 0xfffe0000;  // /15
}  // namespace

std::optional<std::uint32_t> NameTable::AddressFor(const std::string& name) {
  const auto found = index_.find(name);
  if (found != index_.end()) return kBase + 1 + found->second;
  if (names_.size() == kNamesMax) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(names_.size());
  names_.push_back(name);
  index_.emplace(name, index);
  return kBase + 1 + index;
}

const std::string* NameTable::NameOf(std::uint32_t address) const {
  if (!IsSynthetic(address) || address == kBase) return nullptr;
  const std::uint32_t index = address - kBase - 1;
  return index < names_.size() ? &names_[index] : nullptr;
}

bool NameTable::IsSynthetic(std::uint32_t address) { return (address & kMask) == kBase; }

}  // namespace soma::egress
