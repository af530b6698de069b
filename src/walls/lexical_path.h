// SPDX-License-Identifier: Apache-2.0
// Paths as text. Pure; the input is foreign.
#ifndef SOMA_WALLS_LEXICAL_PATH_H_
#define SOMA_WALLS_LEXICAL_PATH_H_

#include <string>
#include <string_view>

namespace soma::walls {

// `path` seen from the absolute directory `base`: absolute, without ".", "..", "//" and a trailing
// "/". It knows no symlinks, so it is what a person would call the file, not always what the kernel
// finds. ".." at the root stays at the root.
std::string JoinLexically(std::string_view base, std::string_view path);

// Everything before the last component ("/" for "/x", "" for "x"), and the last component without
// trailing slashes. Not lexically cleaned: the kernel resolves the parent.
struct ParentAndName {
  std::string parent;
  std::string name;
};
ParentAndName SplitPath(std::string_view path);

}  // namespace soma::walls

#endif  // SOMA_WALLS_LEXICAL_PATH_H_
