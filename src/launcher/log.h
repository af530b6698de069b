// SPDX-License-Identifier: Apache-2.0
// One line to standard error, for the operator. Foreign bytes are escaped.
#ifndef SOMA_LAUNCHER_LOG_H_
#define SOMA_LAUNCHER_LOG_H_

#include <string_view>

namespace soma::launcher {

void Log(std::string_view line);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_LOG_H_
