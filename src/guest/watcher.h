// SPDX-License-Identifier: Apache-2.0
// Watcher: what changes in a directory, or below it, as FileEvents over a channel, until the
// channel is aborted.
//
// Directories made later are watched as well, and what was put into them before the watch stood is
// reported as created. A slow reader makes the kernel's queue (16,384 events) fill up; when that
// overflows the channel ends with kDataLoss, for the caller's picture would be wrong. At most
// kDirectoriesMax directories (kResourceExhausted).
#ifndef SOMA_GUEST_WATCHER_H_
#define SOMA_GUEST_WATCHER_H_

#include <sys/inotify.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "guest/loop.h"
#include "guest/operation.h"
#include "sys/fd.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {

class Watcher final : public Operation {
 public:
  static constexpr std::size_t kDirectoriesMax = 8192;

  // kNotFound; kInvalidArgument if it is no directory.
  static Result<std::unique_ptr<Watcher>> Open(Loop& loop, wire::Session& session,
                                               wire::ChannelId channel, const std::string& path,
                                               bool recursive);
  void OnWritable() override;

 private:
  Watcher(wire::Session& session, wire::ChannelId channel, Fd inotify, std::string root,
          bool recursive)
      : Operation(session, channel),
        inotify_(std::move(inotify)),
        root_(std::move(root)),
        recursive_(recursive) {}

  void OnReady();
  // False when the channel was ended.
  bool OnEvent(const inotify_event& event);
  Status WatchOne(const std::string& relative);
  // A new directory and what is in it already; `report` tells the latter.
  Status WatchTree(const std::string& relative, bool report);
  void ForgetTree(const std::string& relative);
  void Tell(const std::string& name, wire::FileEventKind kind);

  Fd inotify_;
  Loop::Registration registration_;
  std::string root_;
  bool recursive_;
  std::map<int, std::string> directories_;  // watch -> path below root_, "" for root_ itself
  Bytes pending_;
  std::size_t sent_ = 0;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_WATCHER_H_
