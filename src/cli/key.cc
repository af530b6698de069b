// SPDX-License-Identifier: Apache-2.0
// soma key create | list | revoke
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/journal.h"
#include "audit/recorder.h"
#include "audit/time_text.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "sys/service_user.h"
#include "sys/soma_paths.h"
#include "tenant/keyring.h"

namespace soma::cli {

namespace {

struct KeyOptions {
  std::string tenant = "default";
  std::string label;
  std::string id;
};

// The keyring of this machine's server, with the journal that its changes go into. Both belong to
// the server's user, as whom root works here.
struct OpenKeyring {
  sys::ActAsServiceUser actor;
  std::unique_ptr<audit::Journal> journal;
  tenant::Keyring keyring;
};

Result<std::string> PrepareState() {
  SOMA_ASSIGN(std::string state, sys::StateDirectory());
  SOMA_TRY(sys::MakeServiceDirectory(state + "/server"));
  SOMA_TRY(sys::MakeServiceDirectory(state + "/journal"));
  return state;
}

Result<OpenKeyring> OpenServersKeyring(const Context& context) {
  SOMA_ASSIGN(const std::string state, PrepareState());
  SOMA_ASSIGN(auto actor, sys::ActAsServiceUser::Begin());
  SOMA_ASSIGN(auto journal,
              audit::Journal::Open(
                  {.directory = state + "/journal", .run = "soma-key", .clock = &context.clock}));
  SOMA_ASSIGN(auto keyring, tenant::Keyring::Open(state + "/server/keys.db", *journal,
                                                  context.clock, context.random));
  return OpenKeyring{std::move(actor), std::move(journal), std::move(keyring)};
}

std::string InfoJson(const tenant::KeyInfo& key, std::string_view secret) {
  std::string out = StrCat("{\"id\":", JsonText(key.id), ",\"tenant\":", JsonText(key.tenant.name),
                           ",\"label\":", JsonText(key.label), ",\"hint\":", JsonText(key.hint),
                           ",\"created\":\"", audit::FormatTime(key.created), "\"");
  if (key.revoked) out += StrCat(",\"revoked\":\"", audit::FormatTime(*key.revoked), "\"");
  if (!secret.empty()) out += StrCat(",\"key\":", JsonText(secret));
  return out + "}";
}

Status RunCreate(const Context& context, const KeyOptions& options) {
  SOMA_ASSIGN(OpenKeyring open, OpenServersKeyring(context));
  SOMA_ASSIGN(const tenant::NewKey made, open.keyring.CreateKey({options.tenant}, options.label));
  // The bare key alone on standard output, so that KEY=$(soma key create) works.
  PrintLine(context.json ? InfoJson(made.info, made.key) : made.key);
  if (!context.json) {
    Complain(StrCat("key ", made.info.id, " of tenant ", made.info.tenant.name,
                    " made; it can't be shown again"));
  }
  return open.journal->Close();
}

Status RunList(const Context& context, const KeyOptions&) {
  SOMA_ASSIGN(const std::string state, PrepareState());
  SOMA_ASSIGN(const auto actor, sys::ActAsServiceUser::Begin());
  // Looking changes nothing, so there is nothing to record.
  audit::MemoryRecorder nowhere;
  SOMA_ASSIGN(auto keyring, tenant::Keyring::Open(state + "/server/keys.db", nowhere, context.clock,
                                                  context.random));
  SOMA_ASSIGN(const std::vector<tenant::KeyInfo> keys, keyring.ListKeys());
  std::vector<std::string> rows;
  for (const tenant::KeyInfo& key : keys) {
    rows.push_back(context.json
                       ? InfoJson(key, "")
                       : StrCat(key.id, "  ", key.hint, "…  ", audit::FormatTime(key.created), "  ",
                                key.revoked ? "revoked" : "valid  ", "  ", key.tenant.name, "  ",
                                EscapeForTerminal(key.label)));
  }
  if (context.json) {
    PrintLine(StrCat("[", Join(rows, ","), "]"));
  } else {
    for (const std::string& row : rows) PrintLine(row);
  }
  return {};
}

Status RunRevoke(const Context& context, const KeyOptions& options) {
  SOMA_ASSIGN(OpenKeyring open, OpenServersKeyring(context));
  SOMA_TRY(open.keyring.RevokeKey(options.id));
  PrintLine(context.json ? StrCat("{\"revoked\":", JsonText(options.id), "}")
                         : StrCat("key ", EscapeForTerminal(options.id), " is revoked"));
  return open.journal->Close();
}

}  // namespace

void AddKey(CLI::App& tools, Context& context) {
  const auto options = std::make_shared<KeyOptions>();
  CLI::App* key = AddCommand(tools, "key", "Make, list and revoke API keys of the server",
                             "export E2B_API_KEY=$(soma key create)");
  key->require_subcommand(1);
  const auto set = [&](CLI::App* command, Status (*run)(const Context&, const KeyOptions&)) {
    command->callback([&context, options, run] {
      if (const Status status = run(context, *options); !status) FailWith(context, status.error());
    });
  };
  CLI::App* create = AddCommand(*key, "create", "Make a key; it is printed once",
                                "soma key create --tenant acme --label ci");
  create->add_option("--tenant", options->tenant, "Whose key it is")->capture_default_str();
  create->add_option("--label", options->label, "A note to recognise it by");
  set(create, RunCreate);
  set(AddCommand(*key, "list", "Show all keys, never their secret", "soma key list --json"),
      RunList);
  CLI::App* revoke = AddCommand(*key, "revoke", "Make a key invalid, at once and for good",
                                "soma key revoke 1a2b3c4d");
  revoke->add_option("id", options->id, "The key's id, from 'soma key list'")->required();
  set(revoke, RunRevoke);
}

}  // namespace soma::cli
