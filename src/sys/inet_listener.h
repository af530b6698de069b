// SPDX-License-Identifier: Apache-2.0
// Listening TCP sockets by numeric address.
#ifndef SOMA_SYS_INET_LISTENER_H_
#define SOMA_SYS_INET_LISTENER_H_

#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// "127.0.0.1:3000" or "[::1]:3000"; numbers only, no names are looked up. Non-blocking,
// close-on-exec, with SO_REUSEADDR. kInvalidArgument for anything else.
Result<Fd> ListenTcp(const std::string& address);

}  // namespace soma::sys

#endif  // SOMA_SYS_INET_LISTENER_H_
