// SPDX-License-Identifier: Apache-2.0
// Every command of soma-tools, a line each, sorted.
#ifndef SOMA_CLI_COMMANDS_H_
#define SOMA_CLI_COMMANDS_H_

#include "cli/command.h"

namespace soma::cli {

void AddAudit(CLI::App& tools, Context& context);
void AddDoctor(CLI::App& tools, Context& context);
void AddEgressBroker(CLI::App& tools, Context& context);
void AddKey(CLI::App& tools, Context& context);
void AddRun(CLI::App& tools, Context& context);
void AddTemplate(CLI::App& tools, Context& context);
void AddServe(CLI::App& tools, Context& context);
void AddPolicy(CLI::App& tools, Context& context);

}  // namespace soma::cli

#endif  // SOMA_CLI_COMMANDS_H_
