// SPDX-License-Identifier: Apache-2.0
#include "launcher/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/ids.h"
#include "launcher/paths.h"
#include "sys/child_process.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

constexpr std::uint32_t kRecordMagic = 0x524d4f53;  // "SOMR"
constexpr std::size_t kRecordBytesMax = 256;
constexpr std::size_t kSandboxIdBytesMax = 32;

}  // namespace

Bytes Encode(const Record& record) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.Put(kRecordMagic);
  writer.PutString(record.sandbox.text());
  writer.Put(std::to_underlying(record.level));
  writer.Put(record.slot);
  writer.Put(static_cast<std::uint32_t>(record.monitor.pid));
  writer.Put(record.monitor.start_ticks);
  return bytes;
}

Result<Record> DecodeRecord(ByteView bytes) {
  ByteReader reader(bytes);
  if (reader.Get<std::uint32_t>() != kRecordMagic) reader.MarkInvalid();
  const std::string sandbox = reader.GetString(kSandboxIdBytesMax);
  const auto level = reader.Get<std::uint8_t>();
  Record record;
  record.slot = reader.Get<std::uint32_t>();
  record.monitor.pid = static_cast<pid_t>(reader.Get<std::uint32_t>());
  record.monitor.start_ticks = reader.Get<std::uint64_t>();
  const bool level_known = level >= std::to_underlying(control::Level::kContainer) &&
                           level <= std::to_underlying(control::Level::kMicrovm);
  if (!reader.AtEnd() || !level_known || record.slot >= kSlotsMax || record.monitor.pid < 0 ||
      sandbox.empty()) {
    return Fail(Errc::kDataLoss, "a sandbox record is damaged");
  }
  record.level = static_cast<control::Level>(level);
  SOMA_ASSIGN(record.sandbox, control::SandboxId::Create(sandbox));
  return record;
}

Status SaveRecord(const Paths& paths, const Record& record) {
  // A name that no sandbox can have, so that LoadRecords never meets half a record.
  const std::string fresh = paths.Records() + "/.new";
  SOMA_ASSIGN(const Fd file, sys::OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC));
  SOMA_TRY(sys::WriteAll(file, Encode(record)));
  if (rename(fresh.c_str(), paths.Record(record.sandbox).c_str()) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("rename ", fresh)));
  }
  return {};
}

void RemoveRecord(const Paths& paths, const control::SandboxId& sandbox) {
  unlink(paths.Record(sandbox).c_str());
}

Result<std::vector<Record>> LoadRecords(const Paths& paths) {
  SOMA_ASSIGN(const sys::Dir directory, sys::Dir::OpenAbsolute(paths.Records()));
  SOMA_ASSIGN(const auto names, directory.List());
  std::vector<Record> records;
  for (const std::string& name : names) {
    const std::string path = paths.Records() + "/" + name;
    auto bytes = sys::ReadWholeFile(path, kRecordBytesMax);
    auto record = bytes ? DecodeRecord(AsBytes(*bytes))
                        : Result<Record>(std::unexpected(std::move(bytes).error()));
    if (record && record->sandbox.text() == name) {
      records.push_back(*record);
    } else {
      unlink(path.c_str());
    }
  }
  return records;
}

}  // namespace soma::launcher
