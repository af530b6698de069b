// SPDX-License-Identifier: Apache-2.0
// Lists over a channel: Data(kRecords) as the credit allows, then Ok. ListDir walks while it sends,
// so that a large tree costs the agent one directory's names a level.
#ifndef SOMA_GUEST_RECORD_STREAM_H_
#define SOMA_GUEST_RECORD_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "guest/accounts.h"
#include "guest/operation.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {

class RecordStream : public Operation {
 public:
  using Operation::Operation;
  void OnWritable() override;

 protected:
  // The next record; nullopt at the end.
  virtual Result<std::optional<wire::Record>> Next() = 0;

 private:
  Bytes pending_;
  std::size_t sent_ = 0;
};

// Entries in the order of a depth-first walk, each directory's names sorted by bytes. Links are
// followed at the root only; the results' paths begin with the path that was asked for. What
// disappears during the walk is left out.
class DirectoryLister final : public RecordStream {
 public:
  // kNotFound; kInvalidArgument if it is no directory; kFailedPrecondition for a loop of links.
  static Result<std::unique_ptr<DirectoryLister>> Open(wire::Session& session,
                                                       wire::ChannelId channel,
                                                       const std::string& path,
                                                       std::uint32_t depth);

 protected:
  Result<std::optional<wire::Record>> Next() override;

 private:
  struct Level {
    std::string path;
    std::vector<std::string> names;
    std::size_t next = 0;
  };
  DirectoryLister(wire::Session& session, wire::ChannelId channel, std::uint32_t depth)
      : RecordStream(session, channel), depth_(depth), accounts_(Accounts::Load()) {}

  std::uint32_t depth_;
  Accounts accounts_;
  std::vector<Level> levels_;
};

// A list that is known from the start.
class RecordList final : public RecordStream {
 public:
  RecordList(wire::Session& session, wire::ChannelId channel, std::vector<wire::Record> records)
      : RecordStream(session, channel), records_(std::move(records)) {}

 protected:
  Result<std::optional<wire::Record>> Next() override;

 private:
  std::vector<wire::Record> records_;
  std::size_t next_ = 0;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_RECORD_STREAM_H_
