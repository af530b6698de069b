// SPDX-License-Identifier: Apache-2.0
// A guest's answer that is a list of records, as one JSON list. The guest is not trusted: the list
// has a bound, and a record of another kind ends it with an error.
#ifndef SOMA_API_RECORD_LIST_H_
#define SOMA_API_RECORD_LIST_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "aio/task.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {

struct RecordListRules {
  std::chrono::seconds patience;
  std::size_t items_max;
  std::string_view too_many;  // what to say when there are more
  // Appends what the record is shown as, or nothing; false when it has no place in this list.
  std::function<bool(const wire::Record& record, parse::Json& list)> append;
};

aio::Task<parse::Json> ReadRecordList(std::shared_ptr<runtime::GuestChannel> channel,
                                      RecordListRules rules);

}  // namespace soma::api

#endif  // SOMA_API_RECORD_LIST_H_
