// SPDX-License-Identifier: Apache-2.0
// Reading and writing files over a channel, piece by piece as the credit allows: memory stays flat
// whatever the size.
#ifndef SOMA_GUEST_FILE_STREAM_H_
#define SOMA_GUEST_FILE_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "guest/accounts.h"
#include "guest/operation.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

// Opened, Data, Ok. Plain files only (those in /proc count): kInvalidArgument for anything else.
class FileReader final : public Operation {
 public:
  static Result<std::unique_ptr<FileReader>> Open(wire::Session& session, wire::ChannelId channel,
                                                  const Accounts& accounts, const std::string& path,
                                                  const wire::ReadFile& request);
  void OnWritable() override;

 private:
  FileReader(wire::Session& session, wire::ChannelId channel, Fd file,
             const wire::ReadFile& request)
      : Operation(session, channel),
        file_(std::move(file)),
        offset_(request.offset),
        left_(request.length) {}

  Fd file_;
  std::uint64_t offset_;
  std::uint64_t left_;
};

// Opened, then the host's Data and End, then Entry. An existing file is truncated at the beginning
// and keeps its mode, or with `atomic` is replaced at the end. It then belongs to the user, unless
// it was reached by a symlink. What was written stays when the channel is aborted, except with
// `atomic`.
class FileWriter final : public Operation {
 public:
  static Result<std::unique_ptr<FileWriter>> Open(wire::Session& session, wire::ChannelId channel,
                                                  const User& user, const std::string& path,
                                                  wire::WriteFile request);
  ~FileWriter() override;
  void OnMessage(wire::Message& message) override;

 private:
  FileWriter(wire::Session& session, wire::ChannelId channel) : Operation(session, channel) {}
  Status Finish();

  Fd file_;
  std::string path_;
  std::string temporary_;  // "" unless atomic, and after the rename
  wire::WriteFile request_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_FILE_STREAM_H_
