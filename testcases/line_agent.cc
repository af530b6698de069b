// SPDX-License-Identifier: Apache-2.0
// line_agent: stands in for soma-guest in tests of the launcher. Pid 1 of a sandbox; reads lines
// "UID COMMAND" from descriptor 3, runs COMMAND by /bin/sh as that user, answers "STATUS SIZE\n"
// and the output. "exit N" ends it. The tests thereby try their attacks from inside the real walls.
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kWire = 3;

bool ReadLine(std::string& line) {
  line.clear();
  char c = 0;
  for (;;) {
    const ssize_t size = read(kWire, &c, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    if (c == '\n') return true;
    line += c;
  }
}

void WriteAll(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t size = write(kWire, text.data() + done, text.size() - done);
    if (size < 0 && errno != EINTR) return;
    if (size > 0) done += static_cast<std::size_t>(size);
  }
}

[[noreturn]] void RunChild(unsigned id, const char* command, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close(kWire);
  if (id != 0 &&
      (setgroups(0, nullptr) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)) {
    std::perror("becoming the user");
    _exit(125);
  }
  execl("/bin/sh", "sh", "-c", command, nullptr);
  std::perror("/bin/sh");
  _exit(126);
}

// Collects what the command writes until it ends and nothing more is there; what it leaves running
// in the background may keep the pipe.
std::string Collect(int input, pid_t child, int& status) {
  std::string output;
  char block[4096];
  bool ended = false;
  for (;;) {
    pollfd wait{.fd = input, .events = POLLIN, .revents = 0};
    constexpr int kStepMs = 5;
    const int ready = poll(&wait, 1, kStepMs);
    if (ready > 0) {
      const ssize_t size = read(input, block, sizeof block);
      if (size > 0) {
        output.append(block, static_cast<std::size_t>(size));
        continue;
      }
    }
    if (ended) return output;
    ended = waitpid(child, &status, WNOHANG) == child;
  }
}

}  // namespace

int main() {
  // As the real agent: no task may trace its pid 1.
  prctl(PR_SET_DUMPABLE, 0);
  std::string line;
  while (ReadLine(line)) {
    if (line.starts_with("exit ")) return std::atoi(line.c_str() + 5);
    char* command = nullptr;
    const auto id = static_cast<unsigned>(std::strtoul(line.c_str(), &command, 10));
    while (*command == ' ') ++command;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return 1;
    const pid_t child = fork();
    if (child == 0) RunChild(id, command, ends[1]);
    close(ends[1]);
    int status = 0;
    const std::string output =
        child < 0 ? std::string("fork: ") + std::to_string(errno) : Collect(ends[0], child, status);
    close(ends[0]);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const int code = child < 0           ? 254
                     : WIFEXITED(status) ? WEXITSTATUS(status)
                                         : 128 + WTERMSIG(status);
    WriteAll(std::to_string(code) + " " + std::to_string(output.size()) + "\n" + output);
  }
  // The wire is gone: nobody can ask for anything any more.
  return 0;
}
