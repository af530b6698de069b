// SPDX-License-Identifier: Apache-2.0
#include "front/hand_over.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "front/arguments.h"
#include "policy/handover.h"
#include "sys/fd.h"
#include "sys/soma_paths.h"

namespace soma::front {

namespace {

constexpr std::string_view kToolsName = "soma-tools";

Error Execute(std::vector<std::string>& words) {
  const auto tools = ToolsProgram();
  if (!tools) return tools.error();
  const std::string& program = *tools;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return Error::FromErrno(errno, StrCat("executing ", EscapeForTerminal(program)));
}

}  // namespace

Result<std::string> ToolsProgram() {
  SOMA_ASSIGN(const std::string directory, sys::ProgramDirectory());
  return StrCat(directory, "/", kToolsName);
}

Result<Fd> TextInMemory(std::string_view text) {
  Fd fd(memfd_create("soma-policy", MFD_CLOEXEC));
  if (!fd) return std::unexpected(Error::FromErrno(errno, "memfd_create"));
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put =
        pwrite(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (put < 0) return std::unexpected(Error::FromErrno(errno, "writing the hand-over"));
    done += static_cast<std::size_t>(put);
  }
  return fd;
}

Error BecomeTools(std::span<const std::string_view> arguments) {
  std::vector<std::string> words = {std::string(kToolsName)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Execute(words);
}

Error HandOverRun(const RunOptions& options, const policy::Handover& handover) {
  const auto text = policy::EncodeHandover(handover);
  if (!text) return text.error();
  const auto fd = TextInMemory(*text);
  if (!fd) return fd.error();
  // The one descriptor of ours that soma-tools inherits.
  if (fcntl(fd->get(), F_SETFD, 0) != 0) return Error::FromErrno(errno, "fcntl");
  std::vector<std::string> words = {std::string(kToolsName), "run", "--handover-fd",
                                    StrCat(fd->get())};
  if (options.terminal) words.emplace_back("-t");
  if (options.interactive) words.emplace_back("-i");
  if (options.quiet) words.emplace_back("-q");
  if (options.json) words.emplace_back("--json");
  if (options.explain) words.emplace_back("--explain");
  if (options.report) words.insert(words.end(), {"--report", *options.report});
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return Execute(words);
}

}  // namespace soma::front
