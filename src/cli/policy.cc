// SPDX-License-Identifier: Apache-2.0
// soma policy check | explain
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/explain.h"
#include "policy/load.h"
#include "policy/model.h"
#include "sys/plain_file.h"
#include "workspace/path_probe.h"
#include "workspace/policy_files.h"

namespace soma::cli {

namespace {

struct PolicyOptions {
  std::vector<std::string> files;
  std::string workspace = ".";
  std::string profile;
  std::string path;
  std::string connect;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Files are checked alone, on top of the profile: each has to be right by itself.
void CheckOne(Context& context, const policy::Context& place, const std::string& file) {
  const workspace::PolicyPlaces places{
      .system = "", .home = "", .config = "", .workspace = "", .named = {file}};
  Result<policy::Policy> policy = Fail(Errc::kInternal, "");
  if (const auto sources = workspace::ReadPolicyFiles(places); sources) {
    policy = policy::Load(place, *sources, {});
  } else {
    policy = std::unexpected(sources.error());
  }
  if (context.json) {
    PrintLine(StrCat("{\"file\":", JsonText(file), ",\"ok\":", policy ? "true" : "false",
                     policy ? "" : StrCat(",\"error\":", JsonText(policy.error().message())), "}"));
  } else if (policy) {
    PrintLine(StrCat(EscapeForTerminal(file), ": ok"));
  } else {
    PrintLine(policy.error().message());
  }
  if (!policy) context.exit_code = kExitNo;
}

void RunCheck(Context& context, const PolicyOptions& options) {
  const policy::Context place{.home = workspace::RealHome(Variable("HOME")),
                              .workspace = "/workspace"};
  for (const std::string& file : options.files) CheckOne(context, place, file);
}

Result<policy::Policy> LoadWhatHolds(const PolicyOptions& options) {
  policy::Context place{.home = workspace::RealHome(Variable("HOME")), .workspace = {}};
  SOMA_ASSIGN(place.workspace, workspace::CheckWorkspace(options.workspace, place.home));
  const workspace::PolicyPlaces places{.home = place.home,
                                       .config = Variable("XDG_CONFIG_HOME"),
                                       .workspace = place.workspace,
                                       .named = options.files};
  SOMA_ASSIGN(const std::vector<policy::Source> sources, workspace::ReadPolicyFiles(places));
  policy::CommandLineRules rules;
  if (!options.profile.empty()) rules.profile = options.profile;
  return policy::Load(place, sources, rules);
}

// "HOST:PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT".
Result<policy::ConnectRequest> ParseConnect(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string_view::npos
                        ? std::nullopt
                        : ParseInt<std::uint16_t>(text.substr(colon + 1));
  if (!port) return Fail(Errc::kInvalidArgument, "--connect must be HOST:PORT");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  policy::ConnectRequest request{
      .name = "", .address = policy::ParseIpAddress(host), .port = *port};
  if (!request.address) request.name = host;
  return request;
}

std::string DecisionLine(const Context& context, std::string_view question,
                         const policy::Decision& decision) {
  if (!context.json) {
    return StrCat(EscapeForTerminal(question), ": ", policy::ExplainDecision(decision));
  }
  return StrCat(
      "{\"question\":", JsonText(question), ",\"allowed\":", decision.allowed ? "true" : "false",
      ",\"rule\":", JsonText(decision.rule), ",\"origin\":", JsonText(decision.origin.ToText()),
      ",\"remedy\":", JsonText(decision.remedy), "}");
}

Status AnswerQuestions(Context& context, const policy::Policy& policy,
                       const PolicyOptions& options) {
  const auto answer = [&](std::string_view question, const policy::Decision& decision) {
    PrintLine(DecisionLine(context, question, decision));
    if (!decision.allowed) context.exit_code = kExitNo;
  };
  if (!options.path.empty()) {
    if (!options.path.starts_with('/')) {
      return Fail(Errc::kInvalidArgument, StrCat("--path ", EscapeForTerminal(options.path),
                                                 ": an absolute path is needed"));
    }
    answer(StrCat("read ", options.path), DecidePath(policy, options.path, policy::Access::kRead));
    answer(StrCat("write ", options.path),
           DecidePath(policy, options.path, policy::Access::kWrite));
  }
  if (!options.connect.empty()) {
    SOMA_ASSIGN(const policy::ConnectRequest request, ParseConnect(options.connect));
    answer(StrCat("connect ", options.connect), DecideConnect(policy, request));
  }
  return {};
}

Status RunExplain(Context& context, const PolicyOptions& options) {
  SOMA_ASSIGN(const policy::Policy policy, LoadWhatHolds(options));
  if (!options.path.empty() || !options.connect.empty()) {
    return AnswerQuestions(context, policy, options);
  }
  if (context.json) {
    PrintLine(PolicyJson(policy));
    return {};
  }
  for (const std::string& line : policy::ExplainPolicy(policy)) PrintLine(line);
  return {};
}

}  // namespace

void AddPolicy(CLI::App& tools, Context& context) {
  CLI::App* const policy = AddCommand(tools, "policy", "Check policy files and say what they mean",
                                      "soma policy explain --path ~/.ssh");
  policy->require_subcommand(1);
  const auto options = std::make_shared<PolicyOptions>();

  CLI::App* const check =
      AddCommand(*policy, "check", "Say whether policy files are right; 1 if not",
                 "soma policy check .soma.toml");
  check->add_option("FILE", options->files, "policy files, TOML or .json")->required();
  check->callback([&context, options] { RunCheck(context, *options); });

  CLI::App* const explain = AddCommand(
      *policy, "explain", "Say in words what holds in a workspace, or answer a question; 1 for no",
      "soma policy explain --path ~/.ssh --connect pypi.org:443");
  explain->add_option("-C,--workspace", options->workspace, "the directory that a run would be in");
  explain->add_option("--profile", options->profile, "dev, enterprise or consumer");
  explain->add_option("--policy", options->files, "one more policy file");
  explain->add_option("--path", options->path, "may this absolute path be read and written?");
  explain->add_option("--connect", options->connect, "may HOST:PORT be connected to?");
  explain->callback([&context, options] {
    if (const Status status = RunExplain(context, *options); !status)
      FailWith(context, status.error());
  });
}

}  // namespace soma::cli
