// SPDX-License-Identifier: Apache-2.0
#include "image/manifest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"

namespace soma::image {
namespace {

constexpr std::size_t kNameBytesMax = 32;
constexpr std::size_t kIdDigits = 20;
constexpr std::size_t kSha256Digits = 64;

bool IsLowerHex(std::string_view text, std::size_t size) {
  return text.size() == size &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<std::string> RequiredText(const parse::Json& json, std::string_view name) {
  SOMA_ASSIGN(auto value, parse::OptionalString(json, name));
  if (!value) return Fail(Errc::kInvalidArgument, StrCat("the manifest lacks ", name));
  return *std::move(value);
}

Result<std::int64_t> RequiredCount(const parse::Json& json, std::string_view name) {
  SOMA_ASSIGN(const auto value, parse::OptionalInt(json, name));
  if (!value || *value < 0)
    return Fail(Errc::kInvalidArgument, StrCat("the manifest lacks ", name));
  return *value;
}

Status Check(const Manifest& manifest) {
  if (!IsTemplateName(manifest.name))
    return Fail(Errc::kInvalidArgument, "the manifest's name is none");
  if (!IsLowerHex(manifest.key, kSha256Digits) ||
      !IsLowerHex(manifest.erofs_sha256, kSha256Digits)) {
    return Fail(Errc::kInvalidArgument, "the manifest's digests are none");
  }
  if (manifest.id != MakeTemplateId(manifest.name, manifest.erofs_sha256)) {
    return Fail(Errc::kInvalidArgument, "the manifest's id does not belong to its content");
  }
  return {};
}

}  // namespace

bool IsTemplateName(std::string_view text) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kNameBytesMax && is_plain(text.front()) &&
         std::ranges::all_of(
             text, [&](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; });
}

std::string MakeTemplateId(std::string_view name, std::string_view erofs_sha256) {
  return StrCat(name, "-", erofs_sha256.substr(0, kIdDigits));
}

std::string WriteManifest(const Manifest& manifest) {
  parse::Json json = parse::Json::MakeObject();
  json.Set("id", parse::Json(manifest.id));
  json.Set("name", parse::Json(manifest.name));
  json.Set("key", parse::Json(manifest.key));
  json.Set("erofsSha256", parse::Json(manifest.erofs_sha256));
  json.Set("erofsBytes", parse::Json(manifest.erofs_bytes));
  json.Set("defaultUser", parse::Json(manifest.default_user));
  json.Set("workDirectory", parse::Json(manifest.work_directory));
  json.Set("createdSeconds", parse::Json(manifest.created_seconds));
  parse::Json packages = parse::Json::MakeArray();
  for (const std::string& package : manifest.packages) packages.Append(parse::Json(package));
  json.Set("packages", std::move(packages));
  return json.Write() + "\n";
}

Result<Manifest> ReadManifest(std::string_view text) {
  SOMA_ASSIGN(const parse::Json json, parse::ParseJson(text));
  Manifest manifest;
  SOMA_ASSIGN(manifest.id, RequiredText(json, "id"));
  SOMA_ASSIGN(manifest.name, RequiredText(json, "name"));
  SOMA_ASSIGN(manifest.key, RequiredText(json, "key"));
  SOMA_ASSIGN(manifest.erofs_sha256, RequiredText(json, "erofsSha256"));
  SOMA_ASSIGN(const std::int64_t bytes, RequiredCount(json, "erofsBytes"));
  manifest.erofs_bytes = static_cast<std::uint64_t>(bytes);
  SOMA_ASSIGN(manifest.default_user, RequiredText(json, "defaultUser"));
  SOMA_ASSIGN(manifest.work_directory, RequiredText(json, "workDirectory"));
  SOMA_ASSIGN(manifest.created_seconds, RequiredCount(json, "createdSeconds"));
  SOMA_ASSIGN(manifest.packages, parse::OptionalStringList(json, "packages"));
  SOMA_TRY(Check(manifest));
  return manifest;
}

}  // namespace soma::image
