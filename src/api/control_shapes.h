// SPDX-License-Identifier: Apache-2.0
// The control plane's JSON shapes of a sandbox, and the paging of lists. Pure.
#ifndef SOMA_API_CONTROL_SHAPES_H_
#define SOMA_API_CONTROL_SHAPES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "parse/http_target.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"
#include "sandbox/record.h"

namespace soma::api {

// Unlocks every feature of the SDKs that asks for a version (e2b.md section 2).
inline constexpr std::string_view kEnvdVersion = "0.6.13";

parse::Json SandboxShape(const sandbox::SandboxRecord& record, std::string_view domain);
parse::Json DetailShape(const sandbox::SandboxRecord& record, const runtime::Limits& limits,
                        std::string_view domain);
parse::Json ListedShape(const sandbox::SandboxRecord& record, const runtime::Limits& limits);

// The query of a list call (e2b.md section 1.4).
struct ListQuery {
  parse::QueryPairs metadata;
  bool running = true;  // the only state there is yet
  bool ascending = false;
  std::optional<WallTime> started_after;
  std::string template_name;
  std::size_t limit = 100;
  // Continue after this one.
  std::optional<WallTime> after_time;
  std::string after_id;
};
Result<ListQuery> ReadListQuery(const parse::HttpTarget& target);

// Of many sandboxes a page shows few: records are pointed at, not copied.
using Records = std::vector<const sandbox::SandboxRecord*>;

struct Page {
  Records records;
  std::string next_token;  // "" on the last page
  std::size_t total_running = 0;
};
// Points to what `all` points to.
Page SelectPage(Records all, const ListQuery& query);

}  // namespace soma::api

#endif  // SOMA_API_CONTROL_SHAPES_H_
