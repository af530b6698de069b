// SPDX-License-Identifier: Apache-2.0
#include "api/record_list.h"

#include <memory>
#include <string>
#include <variant>

#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {

aio::Task<parse::Json> ReadRecordList(std::shared_ptr<runtime::GuestChannel> channel,
                                      RecordListRules rules) {
  wire::RecordReader reader;
  parse::Json list = parse::Json::MakeArray();
  for (;;) {
    SOMA_CO_ASSIGN(const wire::Message message, co_await channel->Next(rules.patience));
    const auto* data = std::get_if<wire::Data>(&message);
    if (data == nullptr) co_return list;
    reader.Append(data->bytes);
    for (;;) {
      SOMA_CO_ASSIGN(const auto record, reader.Next());
      if (!record) break;
      if (list.AsArray()->size() >= rules.items_max) {
        co_return Fail(Errc::kResourceExhausted, std::string(rules.too_many));
      }
      if (!rules.append(*record, list)) {
        co_return Fail(Errc::kInternal, "the guest's list makes no sense");
      }
    }
  }
}

}  // namespace soma::api
