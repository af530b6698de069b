// SPDX-License-Identifier: Apache-2.0
// Writing to the user's streams and to a report file, without iostreams.
#ifndef SOMA_FRONT_OUTPUT_H_
#define SOMA_FRONT_OUTPUT_H_

#include <string>
#include <string_view>

#include "base/result.h"

namespace soma::front {

// Writes all of it; errors are nobody's business any more (the stream may be closed or full).
void WriteText(int stream, std::string_view text);
// To standard output, for what the caller has asked for: it must arrive.
Status WriteOut(std::string_view text);
// The same as WriteText, as one line: line ends inside become blanks.
void WriteLine(int stream, std::string_view line);

// Creates or replaces a regular file with mode 0600; does not follow a symbolic link at its end, so
// that a link that the task left in its workspace leads nowhere.
Status WriteFile(const std::string& path, std::string_view text);

}  // namespace soma::front

#endif  // SOMA_FRONT_OUTPUT_H_
