// SPDX-License-Identifier: Apache-2.0
// Fields: one description of every struct on the wire, used for both directions: `archive` is a
// FieldWriter or a FieldReader (wire/codec.h), which put, or get, each field in order and check its
// limit. Private to the codec of messages and records.
#ifndef SOMA_WIRE_FIELDS_H_
#define SOMA_WIRE_FIELDS_H_

#include "wire/record.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::wire {

void Fields(auto& a, KeyValue& m) {
  a.Text(m.key, kNameMax);
  a.Text(m.value, kArgumentMax);
}
void Fields(auto& a, TaskSelector& m) {
  a.Number(m.pid);
  a.Text(m.tag, kNameMax);
}
void Fields(auto& a, TerminalSize& m) {
  a.Number(m.columns);
  a.Number(m.rows);
}
void Fields(auto& a, Init& m) {
  a.List(m.environment, kEnvironmentCountMax);
  a.Text(m.default_user, kNameMax);
  a.Text(m.default_workdir, kPathMax);
  a.Text(m.hostname, kNameMax);
  a.Number(m.wall_time_us);
}
void Fields(auto& a, Start& m) {
  a.Text(m.profile, kNameMax);
  a.Texts(m.arguments, kArgumentsCountMax, kArgumentMax);
  a.List(m.environment, kEnvironmentCountMax);
  a.Text(m.workdir, kPathMax);
  a.Text(m.user, kNameMax);
  a.Text(m.tag, kNameMax);
  a.Flag(m.has_terminal);
  Fields(a, m.terminal);
  a.Flag(m.has_stdin);
  a.Number(m.timeout_ms);
}
void Fields(auto& a, Attach& m) { Fields(a, m.task); }
void Fields(auto&, ListTasks&) {}
void Fields(auto& a, Signal& m) {
  Fields(a, m.task);
  a.Number(m.number);
}
void Fields(auto& a, Resize& m) {
  Fields(a, m.task);
  Fields(a, m.size);
}
void Fields(auto& a, Stdin& m) {
  Fields(a, m.task);
  a.Blob(m.bytes, kDataMax);
}
void Fields(auto& a, CloseStdin& m) { Fields(a, m.task); }
void Fields(auto& a, Stat& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
}
void Fields(auto& a, ListDir& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
  a.Number(m.depth);
}
void Fields(auto& a, MakeDir& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
}
void Fields(auto& a, Move& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.source, kPathMax);
  a.Text(m.destination, kPathMax);
}
void Fields(auto& a, Remove& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
}
void Fields(auto& a, ReadFile& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
  a.Number(m.offset);
  a.Number(m.length);
}
void Fields(auto& a, WriteFile& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
  a.Number(m.mode);
  a.Flag(m.atomic);
  a.List(m.metadata, kMetadataCountMax);
}
void Fields(auto& a, Watch& m) {
  a.Text(m.user, kNameMax);
  a.Text(m.path, kPathMax);
  a.Flag(m.recursive);
}
void Fields(auto&, GetStats&) {}
void Fields(auto& a, Dial& m) { a.Number(m.port); }
void Fields(auto& a, Open& m) {
  a.Text(m.host, kNameMax);
  a.Number(m.port);
  a.Number(m.pid);
}
void Fields(auto& a, Datagram& m) {
  a.Number(m.port);
  a.Blob(m.bytes, kDatagramMax);
}

void Fields(auto&, Ok&) {}
void Fields(auto& a, Failed& m) {
  a.Enum(m.code, Errc::kInternal);
  a.Signed(m.errno_value);
  a.Text(m.message, kTextMax);
}
void Fields(auto& a, Started& m) {
  a.Number(m.pid);
  a.Text(m.tag, kNameMax);
}
void Fields(auto& a, Exit& m) {
  a.Signed(m.code);
  a.Number(m.signal);
  a.Flag(m.timed_out);
  a.Text(m.status, kTextMax);
}
void Fields(auto& a, EntryInfo& m) {
  a.Text(m.name, kNameMax);
  a.Text(m.path, kPathMax);
  a.Enum(m.type, EntryType::kOther);
  a.Flag(m.is_symlink);
  a.Number(m.size);
  a.Number(m.mode);
  a.Text(m.owner, kNameMax);
  a.Text(m.group, kNameMax);
  a.Signed(m.modified_ns);
  a.Text(m.symlink_target, kPathMax);
  a.List(m.metadata, kMetadataCountMax);
}
void Fields(auto& a, Entry& m) { Fields(a, m.info); }
void Fields(auto& a, Opened& m) { Fields(a, m.info); }
void Fields(auto& a, Stats& m) {
  a.Number(m.cpu_count);
  a.Number(m.cpu_used_us);
  a.Number(m.memory_total_bytes);
  a.Number(m.memory_used_bytes);
  a.Number(m.memory_cache_bytes);
  a.Number(m.disk_total_bytes);
  a.Number(m.disk_used_bytes);
  a.Number(m.tasks_running);
  a.Number(m.uptime_ms);
}
void Fields(auto& a, DatagramReply& m) { a.Blob(m.bytes, kDatagramMax); }

void Fields(auto& a, Data& m) {
  a.Enum(m.kind, DataKind::kRecords);
  a.Number(m.offset);
  a.Blob(m.bytes, kDataMax);
}
void Fields(auto& a, Ack& m) { a.Number(m.consumed); }
void Fields(auto& a, Cut& m) { a.Number(m.lost_bytes); }
void Fields(auto&, End&) {}
void Fields(auto& a, Reset& m) {
  a.Enum(m.code, Errc::kInternal);
  a.Text(m.message, kTextMax);
}

void Fields(auto& a, Identity& m) {
  a.Number(m.protocol);
  a.Text(m.agent, kNameMax);
  a.Text(m.kernel_release, kNameMax);
  a.Text(m.machine, kNameMax);
  a.Number(m.pid);
  a.Number(m.tasks_running);
  a.Texts(m.features, kMetadataCountMax, kNameMax);
}
void Fields(auto& a, Denied& m) {
  a.Number(m.pid);
  a.Text(m.operation, kNameMax);
  a.Text(m.target, kPathMax);
  a.Text(m.reason, kTextMax);
}

void Fields(auto& a, TaskInfo& m) {
  a.Number(m.pid);
  a.Text(m.tag, kNameMax);
  a.Texts(m.arguments, kArgumentsCountMax, kArgumentMax);
  a.List(m.environment, kEnvironmentCountMax);
  a.Text(m.workdir, kPathMax);
  a.Flag(m.has_terminal);
  a.Flag(m.has_exited);
}
void Fields(auto& a, FileEvent& m) {
  a.Text(m.name, kPathMax);
  a.Enum(m.kind, FileEventKind::kChmod);
}

}  // namespace soma::wire

#endif  // SOMA_WIRE_FIELDS_H_
