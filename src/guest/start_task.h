// SPDX-License-Identifier: Apache-2.0
// StartTask: from a Start request to a running Task: user, environment, workdir, streams, spawn.
#ifndef SOMA_GUEST_START_TASK_H_
#define SOMA_GUEST_START_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "guest/accounts.h"
#include "guest/loop.h"
#include "guest/settings.h"
#include "guest/task.h"
#include "wire/request.h"
#include "wire/session.h"

namespace soma::guest {

// PATH, HOME, USER, LOGNAME of a login, then the settings' variables, then the request's: the last
// of a name wins. Variables without a name, or with '=' or NUL in it, are dropped.
std::vector<std::string> TaskEnvironment(const User& user, const Settings& settings,
                                         const std::vector<wire::KeyValue>& own);

// The errors are those of the request: see guest/spawn.h.
Result<std::unique_ptr<Task>> StartTask(const wire::Start& start, const Settings& settings,
                                        Loop& loop, wire::Session& session);

}  // namespace soma::guest

#endif  // SOMA_GUEST_START_TASK_H_
