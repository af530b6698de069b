// SPDX-License-Identifier: Apache-2.0
// The property that makes project files safe: whatever a project file says, the result allows
// nothing that was denied without it. Random policies over a small universe, so that rules collide
// often.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/level.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::policy {
namespace {

using Engine = std::mt19937;

const char* PickOf(Engine& engine, std::initializer_list<const char*> items) {
  return items.begin()[engine() % items.size()];
}

constexpr const char* kPaths[] = {"/",      "/etc",    "/etc/a",       "/w",  "/w/a",
                                  "/w/a/b", "/home/u", "/home/u/.ssh", "/usr"};
constexpr const char* kGlobs[] = {"/w/**/b", "/w/*", "/**/a", "**/.env", "/home/*/x*"};
constexpr const char* kHosts[] = {"*",
                                  "a.com",
                                  "*.a.com",
                                  "x.a.com",
                                  "10.0.0.0/8",
                                  "10.1.0.0/16:80",
                                  "127.0.0.1:80",
                                  "8.8.8.8",
                                  "8.0.0.0/8:1-100",
                                  "a.com:80"};
constexpr const char* kAskedPaths[] = {
    "/",       "/etc",    "/etc/a/b",        "/w",         "/w/a",     "/w/a/b",  "/w/a/b/c",
    "/w/.env", "/home/u", "/home/u/.ssh/id", "/home/u/xx", "/usr/bin", "/w/c/d/b"};
constexpr const char* kAskedNames[] = {"a.com", "x.a.com", "y.x.a.com", "b.com"};
constexpr const char* kAskedAddresses[] = {"10.0.0.1", "10.1.2.3", "127.0.0.1",
                                           "8.8.8.8",  "8.9.9.9",  "1.1.1.1"};
constexpr std::uint16_t kAskedPorts[] = {1, 80, 443};
constexpr const char* kVariables[] = {"A", "B*", "AB", "*", "PATH"};
constexpr const char* kAskedVariables[] = {"A", "B", "BC", "AB", "PATH", "HOME", "SECRET"};

void AppendList(std::string& out, std::string_view key, const std::vector<std::string>& items) {
  out += StrCat(key, " = [");
  for (const std::string& item : items) out += StrCat("\"", item, "\",");
  out += "]\n";
}

// A valid policy text: every item stands in one list only, so that nothing contradicts itself.
std::string RandomPolicy(Engine& engine) {
  std::string out;
  if (engine() % 3 == 0) {
    out += StrCat("[isolation]\nlevel = \"",
                  PickOf(engine, {"none", "process", "container", "microvm", "auto"}), "\"\n");
  }
  std::vector<std::string> paths[3];
  for (const char* path : kPaths) {
    if (engine() % 3 == 0) paths[engine() % 3].emplace_back(path);
  }
  for (const char* glob : kGlobs) {
    if (engine() % 6 == 0) paths[2].emplace_back(glob);
  }
  out += "[filesystem]\n";
  if (engine() % 2 == 0) out += PickOf(engine, {"default = \"read\"\n", "default = \"hide\"\n"});
  AppendList(out, "read", paths[0]);
  AppendList(out, "write", paths[1]);
  AppendList(out, "hide", paths[2]);
  std::vector<std::string> hosts[2];
  for (const char* host : kHosts) {
    if (engine() % 3 == 0) hosts[engine() % 2].emplace_back(host);
  }
  out += "[network]\n";
  if (engine() % 2 == 0) out += PickOf(engine, {"default = \"allow\"\n", "default = \"deny\"\n"});
  AppendList(out, "allow", hosts[0]);
  AppendList(out, "deny", hosts[1]);
  std::vector<std::string> variables[2];
  for (const char* name : kVariables) {
    if (engine() % 3 == 0) variables[engine() % 2].emplace_back(name);
  }
  out += "[environment]\n";
  AppendList(out, "pass", variables[0]);
  AppendList(out, "drop", variables[1]);
  if (engine() % 2 == 0)
    out +=
        StrCat("[limits]\nmemory = \"", 1 + engine() % 9, "G\"\npids = ", 1 + engine() % 9, "\n");
  if (engine() % 3 == 0)
    out += StrCat("[task]\nephemeral = ", PickOf(engine, {"true", "false"}), "\n");
  return out;
}

std::vector<ConnectRequest> AllRequests() {
  std::vector<ConnectRequest> out;
  for (const std::uint16_t port : kAskedPorts) {
    for (const char* name : kAskedNames) out.push_back({name, std::nullopt, port});
    for (const char* address : kAskedAddresses) out.push_back({"", ParseIpAddress(address), port});
  }
  return out;
}

template <typename T>
bool AtMost(const std::optional<Sourced<T>>& narrow, const std::optional<Sourced<T>>& wide) {
  return !wide || (narrow && narrow->value <= wide->value);
}

void ExpectNarrower(const Policy& narrow, const Policy& wide, const std::string& texts) {
  for (const char* path : kAskedPaths) {
    EXPECT_LE(VerdictOn(narrow, path), VerdictOn(wide, path)) << path << "\n" << texts;
  }
  for (const char* name : kAskedNames) {
    EXPECT_LE(DecideLookup(narrow, name).allowed, DecideLookup(wide, name).allowed) << name << "\n"
                                                                                    << texts;
  }
  for (const ConnectRequest& request : AllRequests()) {
    EXPECT_LE(DecideConnect(narrow, request).allowed, DecideConnect(wide, request).allowed)
        << request.name << ":" << request.port << "\n"
        << texts;
    for (const char* address : kAskedAddresses) {
      const IpAddress dialled = *ParseIpAddress(address);
      EXPECT_LE(DecideDial(narrow, request, dialled, {}).allowed,
                DecideDial(wide, request, dialled, {}).allowed)
          << texts;
    }
  }
  for (const char* name : kAskedVariables) {
    EXPECT_LE(PassesEnvironment(narrow, name), PassesEnvironment(wide, name)) << name << "\n"
                                                                              << texts;
  }
  EXPECT_LE(MayUseNetwork(narrow), MayUseNetwork(wide)) << texts;
  EXPECT_TRUE(AtMost(narrow.limits.memory_bytes, wide.limits.memory_bytes)) << texts;
  EXPECT_TRUE(AtMost(narrow.limits.pids, wide.limits.pids)) << texts;
  EXPECT_GE(narrow.task.ephemeral.value, wide.task.ephemeral.value) << texts;
  if (wide.isolation.level) {
    ASSERT_TRUE(narrow.isolation.level) << texts;
    EXPECT_TRUE(Satisfies(narrow.isolation.level->value, wide.isolation.level->value)) << texts;
  } else if (narrow.isolation.level) {
    EXPECT_TRUE(Satisfies(narrow.isolation.level->value, Level::kProcess)) << texts;
  }
}

TEST(Narrow, NeverAllowsWhatWasDenied) {
  Engine engine(20261129);  // fixed: a failure must come again
  const Context context{.home = "/home/u", .workspace = "/w"};
  for (int i = 0; i < 400; ++i) {
    const std::string user = RandomPolicy(engine);
    const std::string project = RandomPolicy(engine);
    const std::vector<Source> sources = {{LayerKind::kUser, Format::kToml, "user", user},
                                         {LayerKind::kProject, Format::kToml, "project", project}};
    const auto wide = Load(context, std::span(sources).first(1), {});
    const auto narrow = Load(context, sources, {});
    ASSERT_TRUE(wide) << wide.error().message() << "\n" << user;
    ASSERT_TRUE(narrow) << narrow.error().message() << "\n" << project;
    ExpectNarrower(*narrow, *wide, StrCat("user:\n", user, "\nproject:\n", project));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace soma::policy
