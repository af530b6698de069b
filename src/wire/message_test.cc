// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/record.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::wire {
namespace {

Start ExampleStart() {
  return {.profile = "rooted",
          .arguments = {"/bin/bash", "-l", "-c", std::string("a\0b\xff", 4)},
          .environment = {{"A", "1"}, {"B", ""}},
          .workdir = "src",
          .user = "user",
          .tag = "t",
          .has_terminal = true,
          .terminal = {.columns = 80, .rows = 24},
          .has_stdin = true,
          .timeout_ms = 60'000};
}

TEST(Message, EveryTypeComesBackAsTheSameBytes) {
  for (std::size_t type = 0; type < std::variant_size_v<Message>; ++type) {
    Envelope envelope{.channel = 7};
    ASSERT_TRUE(EmplaceAlternative(envelope.message, type));
    if (type == Message(Data{}).index()) continue;  // kind 0 does not exist; see below
    const auto bytes = Encode(envelope);
    ASSERT_TRUE(bytes) << MessageName(envelope.message);
    const auto back = Decode(*bytes);
    ASSERT_TRUE(back) << MessageName(envelope.message);
    EXPECT_EQ(back->channel, 7U);
    EXPECT_EQ(back->message.index(), type);
    EXPECT_EQ(Encode(*back), *bytes);
  }
}

TEST(Message, StartComesBackWhole) {
  const auto bytes = Encode({.channel = 1, .message = ExampleStart()});
  ASSERT_TRUE(bytes);
  const auto back = Decode(*bytes);
  ASSERT_TRUE(back);
  const auto& start = std::get<Start>(back->message);
  const Start expected = ExampleStart();
  EXPECT_EQ(start.arguments, expected.arguments);
  EXPECT_EQ(start.environment, expected.environment);
  EXPECT_EQ(start.terminal, expected.terminal);
  EXPECT_EQ(start.timeout_ms, expected.timeout_ms);
  EXPECT_TRUE(start.has_stdin);
}

TEST(Message, EveryPrefixAndEveryTrailingByteIsRefused) {
  Bytes bytes = *Encode({.channel = 1, .message = ExampleStart()});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Decode(ByteView(bytes).first(size))) << size;
  }
  bytes.push_back(0);
  EXPECT_FALSE(Decode(bytes));
}

TEST(Message, LimitsHoldInBothDirections) {
  Start start = ExampleStart();
  start.arguments[3].assign(kArgumentMax + 1, 'x');
  EXPECT_FALSE(Encode({.channel = 1, .message = start}));
  start.arguments.assign(kArgumentsCountMax + 1, "x");
  EXPECT_FALSE(Encode({.channel = 1, .message = start}));
  // Each part within its limit, the whole not.
  start.arguments.assign(3, std::string(kArgumentMax, 'x'));
  EXPECT_FALSE(Encode({.channel = 1, .message = start}));
  start.arguments.assign(1, std::string(kArgumentMax, 'x'));
  EXPECT_TRUE(Encode({.channel = 1, .message = start}));
}

TEST(Message, ALyingCountIsRefused) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.Put(static_cast<std::uint8_t>(Message(Init{}).index()));
  writer.Put(std::uint32_t{1});
  writer.Put(std::uint32_t{1000});  // environment: 1000 entries in no bytes
  EXPECT_FALSE(Decode(bytes));
}

TEST(Message, ABadEnumOrFlagIsRefused) {
  Bytes bytes = *Encode({.channel = 1, .message = Failed{.code = Errc::kNotFound}});
  bytes[5] = 200;
  EXPECT_FALSE(Decode(bytes));
  bytes = *Encode({.channel = 1, .message = Watch{.path = "/"}});
  bytes.back() = 2;
  EXPECT_FALSE(Decode(bytes));
}

TEST(Message, ADataOfFullSizeFitsIntoOneFrame) {
  const auto bytes =
      Encode({.channel = 1, .message = Data{.kind = DataKind::kPty, .bytes = Bytes(kDataMax)}});
  ASSERT_TRUE(bytes);
  EXPECT_LE(bytes->size(), kFramePayloadMax);
}

TEST(Record, ComeBackFromBytesCutAnywhere) {
  const EntryInfo entry{.name = "x",
                        .path = "/home/user/x",
                        .type = EntryType::kFile,
                        .size = 5,
                        .mode = 0100644,
                        .owner = "user",
                        .group = "user",
                        .modified_ns = -1,
                        .metadata = {{"key", "value"}}};
  const TaskInfo task{.pid = 9, .arguments = {"sleep", "1"}, .has_exited = true};
  const FileEvent event{.name = "a/b", .kind = FileEventKind::kRename};
  Bytes bytes;
  ASSERT_TRUE(AppendRecord(entry, bytes));
  ASSERT_TRUE(AppendRecord(task, bytes));
  ASSERT_TRUE(AppendRecord(event, bytes));
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    RecordReader reader;
    std::vector<Record> records;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      reader.Append(ByteView(bytes).subspan(at, std::min(step, bytes.size() - at)));
      while (true) {
        const auto record = reader.Next();
        ASSERT_TRUE(record);
        if (!*record) break;
        records.push_back(**record);
      }
    }
    EXPECT_EQ(records, (std::vector<Record>{entry, task, event}));
  }
}

TEST(Record, NonsenseIsRefused) {
  RecordReader reader;
  reader.Append(Bytes{0xff, 0xff, 0xff, 0xff, 1});
  EXPECT_FALSE(reader.Next());
}

}  // namespace
}  // namespace soma::wire
