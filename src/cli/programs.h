// SPDX-License-Identifier: Apache-2.0
// The house's other programs, as children of a command: started from the directory of this one,
// watched and stopped.
#ifndef SOMA_CLI_PROGRAMS_H_
#define SOMA_CLI_PROGRAMS_H_

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/process.h"

namespace soma::cli {

struct ProgramStart {
  std::string name;                    // "soma-launcher"
  std::vector<std::string> arguments;  // without the name
  // A session of its own and its standard streams at this descriptor; -1: it shares ours.
  int detached_to = -1;
};

// With our environment.
Result<sys::Process> StartBeside(ProgramStart start);

// True once the process has ended within the time; a signal ends the wait early.
bool EndsWithin(const sys::Process& process, std::chrono::milliseconds time);

// SIGTERM, in time SIGKILL; reaps it when it is our child.
void StopProgram(sys::Process& process);

// Until `launcher`, a child of ours, answers at `socket`. Fails when it ends.
Status WaitForLauncher(const std::string& socket, const sys::Process& launcher);

}  // namespace soma::cli

#endif  // SOMA_CLI_PROGRAMS_H_
