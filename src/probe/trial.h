// SPDX-License-Identifier: Apache-2.0
// Trial: one live attempt in a child process, so that what it enters, mounts or locks itself into
// is gone with it.
#ifndef SOMA_PROBE_TRIAL_H_
#define SOMA_PROBE_TRIAL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "probe/report.h"

namespace soma::probe {

// What a child answers; plain bytes, because it comes through a pipe.
struct Answer {
  Finding finding = Finding::kUnknown;
  int error = 0;  // an errno, when a call failed
  double figure = 0;
  char text[160] = {};  // what was done, or the step that failed
};

Answer Proven(std::string_view how, double figure = 0);
// A step failed with `error`, so the feature isn't there for us.
Answer Missing(std::string_view step, int error);
// The wall let through what it should have stopped.
Answer Leaks(std::string_view what);

// Runs `attempt` in a child and gives its answer. A child that dies, or takes longer than ten
// seconds (then it is killed), is kUnknown.
Answer Try(const std::function<Answer()>& attempt);

// Row from an answer: evidence with the errno's name; the remedy only where something is missing.
Row MakeRow(Feature feature, const Answer& answer, std::string_view remedy);

// For attempts, in the child: a new user namespace in which the caller is root, with `more`
// CLONE_NEW* flags. 0 or an errno; `step` says which call it was.
int EnterNamespaces(int more, std::string_view& step);

// A fresh directory below `parent`, removed with all in it at the end. Empty path when it can't be
// made.
class Scratch {
 public:
  explicit Scratch(const std::string& parent);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string Child(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// Writes a small file in one call; 0 or an errno.
int WriteText(const std::string& path, std::string_view text);

}  // namespace soma::probe

#endif  // SOMA_PROBE_TRIAL_H_
