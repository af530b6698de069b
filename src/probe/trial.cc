// SPDX-License-Identifier: Apache-2.0
#include "probe/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "probe/report.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace soma::probe {
namespace {

constexpr int kAttemptMilliseconds = 10000;

Answer Make(Finding finding, std::string_view text, int error, double figure) {
  Answer answer{.finding = finding, .error = error, .figure = figure};
  text = text.substr(0, sizeof answer.text - 1);
  std::ranges::copy(text, answer.text);
  return answer;
}

}  // namespace

Answer Proven(std::string_view how, double figure) {
  return Make(Finding::kProven, how, 0, figure);
}
Answer Missing(std::string_view step, int error) { return Make(Finding::kAbsent, step, error, 0); }
Answer Leaks(std::string_view what) { return Make(Finding::kAbsent, what, 0, 0); }

Answer Try(const std::function<Answer()>& attempt) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return Make(Finding::kUnknown, "pipe", errno, 0);
  const Fd reader(pipe[0]);
  Fd writer(pipe[1]);
  const sys::CloneResult child = sys::Clone(0);
  if (child.pid < 0) return Make(Finding::kUnknown, "fork", child.error, 0);
  if (child.pid == 0) {
    sys::DieWithParent(SIGKILL);
    const Answer answer = attempt();
    const ssize_t written = ::write(writer.get(), &answer, sizeof answer);
    ::_exit(written == ssize_t{sizeof answer} ? 0 : 1);
  }
  writer.Reset();
  sys::Process process(child.pid, Fd(child.pidfd));
  pollfd poll{.fd = reader.get(), .events = POLLIN, .revents = 0};
  Answer answer;
  if (::poll(&poll, 1, kAttemptMilliseconds) <= 0) {
    answer = Make(Finding::kUnknown, "no answer within ten seconds", 0, 0);
  } else if (::read(reader.get(), &answer, sizeof answer) != ssize_t{sizeof answer}) {
    answer = Make(Finding::kUnknown, "the attempt died before it could answer", 0, 0);
  }
  process.Signal(SIGKILL);
  (void)process.Wait();
  return answer;
}

Row MakeRow(Feature feature, const Answer& answer, std::string_view remedy) {
  Row row{.feature = feature,
          .finding = answer.finding,
          .evidence = std::string(answer.text),
          .figure = answer.figure};
  if (answer.error != 0) row.evidence += StrCat(": ", ErrnoName(answer.error));
  if (answer.finding != Finding::kProven) row.remedy = remedy;
  return row;
}

int EnterNamespaces(int more, std::string_view& step) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  step = "unshare";
  if (::unshare(CLONE_NEWUSER | more) != 0) return errno;
  step = "write the id maps";
  if (const int error = WriteText("/proc/self/setgroups", "deny"); error != 0) return error;
  if (const int error = WriteText("/proc/self/uid_map", StrCat("0 ", uid, " 1")); error != 0) {
    return error;
  }
  return WriteText("/proc/self/gid_map", StrCat("0 ", gid, " 1"));
}

Scratch::Scratch(const std::string& parent) {
  std::string pattern = parent + "/soma-probe-XXXXXX";
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

int WriteText(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                            : errno;
}

}  // namespace soma::probe
