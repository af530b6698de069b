// SPDX-License-Identifier: Apache-2.0
// soma: the small static front. `run` happens here; everything else is soma-tools, beside this
// program.
#include <signal.h>
#include <unistd.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "front/hand_over.h"
#include "front/output.h"
#include "front/run.h"
#include "sys/real_clock.h"

int main(int argc, char** argv) {
  // Over a limit on the size of files a write fails, and says so.
  (void)::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string_view> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  // An option of every command may stand before the command too, as with soma-tools.
  if (arguments.size() > 1 && arguments[0] == "--json" && arguments[1] == "run") {
    std::swap(arguments[0], arguments[1]);
  }
  if (!arguments.empty() && arguments.front() == "run") {
    soma::sys::RealClock clock;
    soma::sys::RealRandom random;
    return soma::front::RunMain(std::span(arguments).subspan(1), clock, random);
  }
  if (arguments.empty()) arguments.emplace_back("--help");
  const soma::Error error = soma::front::BecomeTools(arguments);
  soma::front::WriteLine(STDERR_FILENO, soma::StrCat("soma: ", error.message()));
  return soma::front::kExitOwnFailure;
}
