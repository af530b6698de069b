// SPDX-License-Identifier: Apache-2.0
#include "image/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::image {
namespace {

constexpr std::size_t kOutputBytesMax = std::size_t{1} << 20;

// posix_spawn cannot ask for a signal at the parent's death; util-linux's setpriv can, and then
// becomes the program.
constexpr std::array kDieWithUs = {"setpriv", "--pdeathsig", "KILL", "--"};

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(Error::FromErrno(errno, "pipe2"));
  return Pipe{.read = Fd(ends[0]), .write = Fd(ends[1])};
}

Result<pid_t> Spawn(const std::vector<std::string>& arguments, const Fd& standard_output) {
  std::vector<char*> argv;
  for (const char* argument : kDieWithUs) argv.push_back(const_cast<char*>(argument));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, standard_output.get(), STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return std::unexpected(Error::FromErrno(error, StrCat("starting ", arguments.front())));
  return pid;
}

// Everything until the end of the pipe; what is above the limit is read and dropped, so that the
// writer never blocks.
Result<std::string> ReadAll(const Fd& pipe) {
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t got = read(pipe.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(Error::FromErrno(errno, "reading a program's output"));
    if (got == 0) return text;
    if (text.size() <= kOutputBytesMax) text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> RunProgram(const std::vector<std::string>& arguments) {
  SOMA_ASSIGN(Pipe pipe, MakePipe());
  SOMA_ASSIGN(const pid_t pid, Spawn(arguments, pipe.write));
  pipe.write.Reset();
  auto output = ReadAll(pipe.read);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return std::unexpected(Error::FromErrno(errno, "waitpid"));
  }
  if (!output) return output;
  if (WIFSIGNALED(status)) {
    return Fail(Errc::kInternal,
                StrCat(arguments.front(), " was killed by signal ", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return Fail(Errc::kInternal,
                StrCat(arguments.front(), " failed with exit status ", WEXITSTATUS(status)));
  }
  if (output->size() > kOutputBytesMax) {
    return Fail(Errc::kOutOfRange,
                StrCat(arguments.front(), " wrote more than ", kOutputBytesMax, " bytes"));
  }
  return output;
}

}  // namespace soma::image
