// SPDX-License-Identifier: Apache-2.0
// Writing to the user's streams and to a report file, without iostreams.
#ifndef SOMA_FRONT_OUTPUT_H_
#define SOMA_FRONT_OUTPUT_H_

#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::front {

// Writes all of it; errors are nobody's business any more (the stream may be closed or full).
void WriteText(int stream, std::string_view text);
// To standard output, for what the caller has asked for: it must arrive.
Status WriteOut(std::string_view text);
// The same as WriteText, as one line: line ends inside become blanks.
void WriteLine(int stream, std::string_view line);

// A file for what is known only at the end, opened before the start: its path may lead through
// folders that the task can write to, and must not lead elsewhere by then.
class ReportFile {
 public:
  // Opens or creates (mode 0600) a regular file; its content stays until Write. A symbolic link at
  // the path's end is refused.
  static Result<ReportFile> Open(const std::string& path);
  ReportFile(ReportFile&&) = default;
  ReportFile& operator=(ReportFile&&) = default;
  // A file that Open created and nobody wrote to is removed.
  ~ReportFile();

  // Replaces the content. An error when the task has removed the file: nobody would find it.
  Status Write(std::string_view text);

 private:
  ReportFile(Fd folder, std::string name, Fd file, bool created);

  Fd folder_;
  std::string name_;
  Fd file_;
  bool created_ = false;
};

}  // namespace soma::front

#endif  // SOMA_FRONT_OUTPUT_H_
