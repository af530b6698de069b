// SPDX-License-Identifier: Apache-2.0
// Records: lists of things (directory entries, tasks, file events) as a byte stream inside
// Data(kRecords): each record is a 32-bit length, a type byte, and the encoded struct. Untrusted
// when read.
#ifndef SOMA_WIRE_RECORD_H_
#define SOMA_WIRE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::wire {

struct TaskInfo {
  std::uint32_t pid = 0;
  std::string tag;
  std::vector<std::string> arguments;
  std::vector<KeyValue> environment;  // the request's own
  std::string workdir;
  bool has_terminal = false;
  bool has_exited = false;  // still attachable
  friend bool operator==(const TaskInfo&, const TaskInfo&) = default;
};
enum class FileEventKind : std::uint8_t {
  kCreate = 1,
  kWrite = 2,
  kRemove = 3,
  kRename = 4,
  kChmod = 5,
};
struct FileEvent {
  std::string name;  // relative to the watched directory
  FileEventKind kind = FileEventKind::kCreate;
  friend bool operator==(const FileEvent&, const FileEvent&) = default;
};

using Record = std::variant<EntryInfo, TaskInfo, FileEvent>;

// Appends one record with its length. kOutOfRange beyond a limit; `out` is unchanged then.
Status AppendRecord(const Record& record, Bytes& out);

// Puts records together from the bytes of Data(kRecords), which may cut them anywhere. Holds at
// most one record (kMessageSizeMax) and one Append.
class RecordReader {
 public:
  void Append(ByteView bytes);
  // Nullopt when more bytes are needed; kInvalidArgument when the other side sent nonsense (then
  // the channel should be reset).
  Result<std::optional<Record>> Next();

 private:
  Bytes buffer_;
  std::size_t offset_ = 0;
};

}  // namespace soma::wire

#endif  // SOMA_WIRE_RECORD_H_
