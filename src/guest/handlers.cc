// SPDX-License-Identifier: Apache-2.0
// The requests of the wire, one function each.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "guest/accounts.h"
#include "guest/agent.h"
#include "guest/entry.h"
#include "guest/file_stream.h"
#include "guest/files.h"
#include "guest/machine_stats.h"
#include "guest/operation.h"
#include "guest/record_stream.h"
#include "guest/settings.h"
#include "guest/splice.h"
#include "guest/start_task.h"
#include "guest/task.h"
#include "guest/watcher.h"
#include "wire/message.h"
#include "wire/record.h"

namespace soma::guest {
namespace {

// Who acts, and where.
struct Place {
  User user;
  std::string path;
};

Result<Place> Resolve(const Settings& settings, const std::string& name, const std::string& path) {
  SOMA_ASSIGN(User user, settings.ActingUser(Accounts::Load(), name));
  SOMA_ASSIGN(std::string resolved, settings.Resolve(user, path));
  return Place{.user = std::move(user), .path = std::move(resolved)};
}

}  // namespace

Status Agent::Reply(wire::ChannelId channel, const wire::Message& message) {
  return session_.Reply(channel, message);
}

Status Agent::ReplyEntry(wire::ChannelId channel, const std::string& path) {
  SOMA_ASSIGN(wire::EntryInfo info, DescribeEntry(Accounts::Load(), path));
  return Reply(channel, wire::Entry{.info = std::move(info)});
}

Status Agent::Keep(wire::ChannelId channel, std::unique_ptr<Operation> operation) {
  Operation& kept = *operation;
  operations_[channel] = std::move(operation);
  kept.OnWritable();
  return {};
}

Status Agent::Handle(wire::ChannelId channel, wire::Init& request) {
  settings_.Apply(std::move(request));
  return Reply(channel, wire::Ok{});
}

// ---- Tasks ----

Status Agent::Handle(wire::ChannelId channel, wire::Start& request) {
  if (tasks_.running_count() >= TaskTable::kRunningMax) {
    return Fail(Errc::kResourceExhausted, "too many processes");
  }
  SOMA_ASSIGN(auto started, StartTask(request, settings_, loop_, session_));
  Task& task = tasks_.Add(std::move(started));
  if (request.timeout_ms != 0) {
    task.deadline = clock_.MonotonicNow() + std::chrono::milliseconds(request.timeout_ms);
  }
  readers_[channel] = task.pid();
  task.Attach(channel);
  return {};
}

Status Agent::Handle(wire::ChannelId channel, wire::Attach& request) {
  SOMA_ASSIGN(Task * task, tasks_.Find(request.task));
  readers_[channel] = task->pid();
  task->Attach(channel);
  return {};
}

Status Agent::Handle(wire::ChannelId channel, wire::ListTasks&) {
  std::vector<wire::Record> records;
  for (const auto& [pid, task] : tasks_) {
    wire::TaskInfo info = task->info();
    info.has_exited = task->exited();
    records.emplace_back(std::move(info));
  }
  return Keep(channel, std::make_unique<RecordList>(session_, channel, std::move(records)));
}

Status Agent::Handle(wire::ChannelId channel, wire::Signal& request) {
  SOMA_ASSIGN(Task * task, tasks_.Find(request.task));
  SOMA_TRY(task->Signal(request.number));
  return Reply(channel, wire::Ok{});
}

Status Agent::Handle(wire::ChannelId channel, wire::Resize& request) {
  SOMA_ASSIGN(Task * task, tasks_.Find(request.task));
  SOMA_TRY(task->Resize(request.size));
  return Reply(channel, wire::Ok{});
}

Status Agent::Handle(wire::ChannelId channel, wire::Stdin& request) {
  SOMA_ASSIGN(Task * task, tasks_.Find(request.task));
  task->WriteInput(channel, std::move(request.bytes));
  return {};
}

Status Agent::Handle(wire::ChannelId channel, wire::CloseStdin& request) {
  SOMA_ASSIGN(Task * task, tasks_.Find(request.task));
  task->CloseInput(channel);
  return {};
}

// ---- Files ----

Status Agent::Handle(wire::ChannelId channel, wire::Stat& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  return ReplyEntry(channel, place.path);
}

Status Agent::Handle(wire::ChannelId channel, wire::ListDir& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  SOMA_ASSIGN(auto lister, DirectoryLister::Open(session_, channel, place.path, request.depth));
  return Keep(channel, std::move(lister));
}

Status Agent::Handle(wire::ChannelId channel, wire::MakeDir& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  SOMA_TRY(MakeDirectory(place.user, place.path));
  return ReplyEntry(channel, place.path);
}

Status Agent::Handle(wire::ChannelId channel, wire::Move& request) {
  SOMA_ASSIGN(const Place source, Resolve(settings_, request.user, request.source));
  SOMA_ASSIGN(const Place destination, Resolve(settings_, request.user, request.destination));
  SOMA_TRY(MoveEntry(source.user, source.path, destination.path));
  return ReplyEntry(channel, destination.path);
}

Status Agent::Handle(wire::ChannelId channel, wire::Remove& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  SOMA_TRY(RemoveEntry(place.path));
  return Reply(channel, wire::Ok{});
}

Status Agent::Handle(wire::ChannelId channel, wire::ReadFile& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  SOMA_ASSIGN(auto reader,
              FileReader::Open(session_, channel, Accounts::Load(), place.path, request));
  return Keep(channel, std::move(reader));
}

Status Agent::Handle(wire::ChannelId channel, wire::WriteFile& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  SOMA_ASSIGN(auto writer,
              FileWriter::Open(session_, channel, place.user, place.path, std::move(request)));
  return Keep(channel, std::move(writer));
}

Status Agent::Handle(wire::ChannelId channel, wire::Watch& request) {
  SOMA_ASSIGN(const Place place, Resolve(settings_, request.user, request.path));
  SOMA_ASSIGN(auto watcher, Watcher::Open(loop_, session_, channel, place.path, request.recursive));
  return Keep(channel, std::move(watcher));
}

// ---- The rest ----

Status Agent::Handle(wire::ChannelId channel, wire::GetStats&) {
  wire::Stats stats = ReadMachineStats();
  stats.tasks_running = static_cast<std::uint32_t>(tasks_.running_count());
  return Reply(channel, stats);
}

Status Agent::Handle(wire::ChannelId channel, wire::Dial& request) {
  auto dialer = std::make_unique<Dialer>(loop_, session_, channel);
  Dialer& dialing = *dialer;
  SOMA_TRY(Keep(channel, std::move(dialer)));
  dialing.Start(request.port);
  return {};
}

}  // namespace soma::guest
