// SPDX-License-Identifier: Apache-2.0
// soma-profiles-generate: writes the built-in profiles as C++ arrays: their text, and what the
// parser of policy files makes of it. `soma run` starts with one of them every time, and parsing it
// would be a twentieth of the whole start. Runs during the build.
//
//   soma-profiles-generate OUTPUT PROFILE.toml...
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/document.h"

namespace soma::policy {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// What FlatNode and Quoted can hold; more no built-in profile needs.
bool IsPlain(const Node& node) {
  const auto is_plain_text = [](std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  };
  return node.kind != Node::Kind::kFloat && node.kind != Node::Kind::kOther &&
         is_plain_text(node.key) && is_plain_text(node.text) &&
         std::ranges::all_of(node.items, IsPlain) && std::ranges::all_of(node.members, IsPlain);
}

// In the order of a walk that visits a node before its children; FlatNode says how to read it.
void Flatten(const Node& node, std::string& out) {
  const std::vector<Node>& children = node.kind == Node::Kind::kTable ? node.members : node.items;
  out += StrCat("    {static_cast<Node::Kind>(", static_cast<int>(node.kind), "), ", node.line,
                ", ", node.integer, ", ", children.size(), ", ", Quoted(node.key), ", ",
                Quoted(node.text), "},\n");
  for (const Node& child : children) Flatten(child, out);
}

struct Generated {
  std::string names;
  std::string texts;
  std::string nodes;
  std::string documents;
};

Status AddProfile(const std::string& path, Generated& out) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return Fail(Errc::kNotFound, StrCat("can't read ", path));
  const std::string name = std::filesystem::path(path).stem().string();
  SOMA_ASSIGN(const Node document, ParseTomlDocument(text, path));
  if (!IsPlain(document)) {
    return Fail(Errc::kInvalidArgument,
                StrCat(path, ": a built-in profile holds ASCII text, integers and booleans only"));
  }
  out.names += StrCat("    \"", name, "\",\n");
  out.texts += StrCat("    R\"~~~(", text, ")~~~\",\n");
  out.nodes += StrCat("constexpr FlatNode k_", name, "[] = {\n");
  Flatten(document, out.nodes);
  out.nodes += "};\n";
  out.documents += StrCat("    k_", name, ",\n");
  return {};
}

Status Generate(std::span<char*> words) {
  if (words.size() < 2) return Fail(Errc::kInvalidArgument, "need OUTPUT PROFILE.toml...");
  Generated generated;
  for (const char* path : words.subspan(1)) SOMA_TRY(AddProfile(path, generated));
  const std::string count = StrCat(words.size() - 1);
  std::ofstream out(words[0], std::ios::binary | std::ios::trunc);
  out << "constexpr std::array<std::string_view, " << count << "> kBuiltinNames = {{\n"
      << generated.names << "}};\n"
      << "constexpr std::array<std::string_view, " << count << "> kBuiltinTexts = {{\n"
      << generated.texts << "}};\n"
      << generated.nodes << "constexpr std::array<std::span<const FlatNode>, " << count
      << "> kBuiltinDocuments = {{\n"
      << generated.documents << "}};\n";
  out.close();
  if (!out) return Fail(Errc::kUnavailable, StrCat("can't write ", words[0]));
  return {};
}

}  // namespace
}  // namespace soma::policy

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  const auto done = soma::policy::Generate(words.subspan(1));
  if (done) return 0;
  std::fputs((done.error().message() + "\n").c_str(), stderr);
  return 1;
}
