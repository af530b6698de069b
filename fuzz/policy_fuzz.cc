// SPDX-License-Identifier: Apache-2.0
// Policy files from an untrusted tree: whatever the bytes are, loading gives a policy or an error,
// and a project file never allows what the built-in profile denies.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace soma::policy;
  if (size == 0) return 0;
  const Format format = (data[0] & 1) != 0 ? Format::kJson : Format::kToml;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Context context{.home = "/home/u", .workspace = "/w"};
  const std::vector<Source> sources = {{LayerKind::kProject, format, "fuzz", text}};
  const auto policy = Load(context, sources, {});
  if (!policy) {
    SOMA_CHECK(!policy.error().message().empty());
    return 0;
  }
  static const auto plain = Load(context, {}, {});
  for (const char* path : {"/etc/passwd", "/home/u/.ssh/id_rsa", "/w/a/b", "/usr/bin/env"}) {
    SOMA_CHECK(VerdictOn(*policy, path) <= VerdictOn(*plain, path));
  }
  SOMA_CHECK(!DecideConnect(*policy, {"example.com", std::nullopt, 443}).allowed);
  SOMA_CHECK(!MayUseNetwork(*policy));
  const std::string tail = text.substr(0, 300);
  (void)ParseCidr(tail);
  (void)NormalHostName(tail);
  (void)DecidePath(*policy, tail, Access::kWrite);
  return 0;
}
