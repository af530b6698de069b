// SPDX-License-Identifier: Apache-2.0
// soma-seccomp-generate: writes one list as a C++ array of BPF instructions. Runs during the build.
//
//   soma-seccomp-generate SYMBOL OUTPUT LIST [--notify OVERLAY] [--linear]
#include <linux/filter.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "tools/seccomp/compiler.h"
#include "tools/seccomp/policy.h"

namespace soma::seccomp {
namespace {

struct Arguments {
  std::string symbol;
  std::string output;
  std::string list;
  std::string overlay;
  Shape shape = Shape::kTree;
};

Result<Arguments> ParseArguments(std::span<char*> words) {
  if (words.size() < 3) return Fail(Errc::kInvalidArgument, "need SYMBOL OUTPUT LIST");
  Arguments arguments{.symbol = words[0], .output = words[1], .list = words[2]};
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--linear") {
      arguments.shape = Shape::kLinear;
    } else if (word == "--notify" && i + 1 < words.size()) {
      arguments.overlay = words[++i];
    } else {
      return Fail(Errc::kInvalidArgument, StrCat("unknown argument ", word));
    }
  }
  return arguments;
}

std::string Array(const Arguments& arguments, const std::vector<sock_filter>& program) {
  std::string out =
      StrCat("// Generated from ", arguments.list.substr(arguments.list.rfind('/') + 1), "; ",
             program.size(), " instructions.\n", "inline constexpr sock_filter ", arguments.symbol,
             "[] = {\n");
  for (const sock_filter& i : program) {
    out += StrCat("    {", i.code, ", ", unsigned{i.jt}, ", ", unsigned{i.jf}, ", ", i.k, "U},\n");
  }
  return out + "};\n";
}

Status Generate(std::span<char*> words) {
  SOMA_ASSIGN(const Arguments arguments, ParseArguments(words));
  SOMA_ASSIGN(const Policy policy, arguments.overlay.empty()
                                       ? LoadPolicy(arguments.list)
                                       : LoadPolicyWithNotify(arguments.list, arguments.overlay));
  SOMA_ASSIGN(const std::vector<sock_filter> program, Compile(policy, arguments.shape));
  std::ofstream file(arguments.output, std::ios::trunc);
  file << Array(arguments, program);
  file.close();
  if (!file) return Fail(Errc::kInternal, StrCat("can't write ", arguments.output));
  return {};
}

}  // namespace
}  // namespace soma::seccomp

int main(int argc, char** argv) {
  const auto status = soma::seccomp::Generate(
      std::span(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)));
  if (status) return 0;
  std::fprintf(stderr, "soma-seccomp-generate: %s\n", status.error().message().c_str());
  return 1;
}
