// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "api/byte_range.h"
#include "api/control_shapes.h"
#include "api/create_request.h"
#include "api/entry_shape.h"
#include "api/process_shapes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "parse/http_target.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"
#include "sandbox/record.h"

namespace soma::api {
namespace {

using parse::Json;
using parse::ParseJson;

TEST(CreateRequest, GenerationsDiffer) {
  const Json body = *ParseJson(R"({"templateID":"base"})");
  EXPECT_EQ(ReadCreateRequest(body, Generation::kV1)->timeout, std::chrono::seconds(15));
  EXPECT_EQ(ReadCreateRequest(body, Generation::kV2)->timeout, std::chrono::seconds(300));
}

TEST(CreateRequest, ReadsTheNetworkObject) {
  const auto request = ReadCreateRequest(
      *ParseJson(R"({"templateID":"b","allow_internet_access":false,"network":{"allowOut":["a.b"],
                 "denyOut":["0.0.0.0/0"],"allowPublicTraffic":false,"maskRequestHost":"x:${PORT}"}})"),
      Generation::kV2);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->network.allow_internet, false);
  EXPECT_EQ(request->network.allow_out, (std::vector<std::string>{"a.b"}));
  EXPECT_FALSE(request->network.allow_public_traffic);
}

// Leaving out what was asked for would be less isolation than asked for.
TEST(CreateRequest, RefusesWhatItCannotKeep) {
  for (const char* body : {R"({"templateID":"b","network":{"egressProxy":{"address":"a:1"}}})",
                           R"({"templateID":"b","network":{"rules":{"a":[]}}})",
                           R"({"templateID":"b","autoPause":true})",
                           R"({"templateID":"b","volumeMounts":[{"name":"v","path":"/v"}]})"}) {
    EXPECT_EQ(ReadCreateRequest(*ParseJson(body), Generation::kV2).error().code(),
              Errc::kUnimplemented)
        << body;
  }
}

std::vector<sandbox::SandboxRecord> Three() {
  std::vector<sandbox::SandboxRecord> all(3);
  for (std::size_t i = 0; i < 3; ++i) {
    all[i].id = StrCat("i", i);
    all[i].template_id = "base";
    all[i].started_at = WallTime(std::chrono::seconds(i < 2 ? 5 : 9));
  }
  return all;
}

Records PointersTo(const std::vector<sandbox::SandboxRecord>& all) {
  Records pointers;
  for (const auto& record : all) pointers.push_back(&record);
  return pointers;
}

std::vector<std::string> Ids(const Page& page) {
  std::vector<std::string> ids;
  for (const auto* record : page.records) ids.push_back(record->id);
  return ids;
}

TEST(ListPage, EveryRecordComesOnceAlsoWithEqualTimes) {
  const auto three = Three();
  for (const char* order : {"asc", "desc"}) {
    std::vector<std::string> seen;
    std::string token;
    do {
      const auto query = ReadListQuery(*parse::ParseTarget(
          StrCat("/x?limit=1&order=", order, token.empty() ? "" : "&nextToken=", token)));
      ASSERT_TRUE(query);
      const Page page = SelectPage(PointersTo(three), *query);
      for (const std::string& id : Ids(page)) seen.push_back(id);
      token = page.next_token;
    } while (!token.empty());
    EXPECT_EQ(seen.size(), 3U);
    EXPECT_EQ(seen.front(), std::string(order) == "asc" ? "i0" : "i2");
  }
}

TEST(ListPage, StartedAfterIsInclusive) {
  const auto query =
      ReadListQuery(*parse::ParseTarget("/x?startedAfter=1970-01-01T00:00:09.000Z&limit=100"));
  ASSERT_TRUE(query);
  const auto three = Three();
  EXPECT_EQ(Ids(SelectPage(PointersTo(three), *query)), (std::vector<std::string>{"i2"}));
}

TEST(ListQuery, RefusesNonsense) {
  for (const char* target : {"/x?limit=0", "/x?limit=101", "/x?limit=x", "/x?nextToken=zz",
                             "/x?startedAfter=now", "/x?state=odd", "/x?metadata=%25"}) {
    EXPECT_FALSE(ReadListQuery(*parse::ParseTarget(target))) << target;
  }
}

TEST(ProcessShapes, StartHasStdinUnlessToldOtherwise) {
  EXPECT_TRUE(ReadStart(*ParseJson(R"({"process":{"cmd":"cat"}})"))->has_stdin);
  const auto start = ReadStart(*ParseJson(
      R"({"process":{"cmd":"/bin/bash","args":["-c","x"],"envs":{"A":"b"},"cwd":"/t"},"stdin":false,
          "pty":{"size":{"cols":80,"rows":24}},"tag":"t"})"));
  ASSERT_TRUE(start);
  EXPECT_FALSE(start->has_stdin);
  EXPECT_EQ(start->arguments, (std::vector<std::string>{"/bin/bash", "-c", "x"}));
  EXPECT_EQ(start->environment.at(0).key, "A");
  EXPECT_TRUE(start->has_terminal);
  EXPECT_EQ(start->terminal.columns, 80);
}

TEST(ProcessShapes, RefusesBadSizesSelectorsAndSignals) {
  EXPECT_FALSE(ReadPtySize(*ParseJson(R"({"pty":{"size":{"cols":70000}}})")));
  EXPECT_FALSE(ReadPtySize(*ParseJson(R"({"pty":{}})")));
  EXPECT_EQ(ReadSelector(*ParseJson(R"({"process":{"pid":-1}})")).error().code(), Errc::kNotFound);
  EXPECT_FALSE(ReadSelector(*ParseJson(R"({"process":{}})")));
  EXPECT_EQ(ReadSignal(*ParseJson(R"({"signal":"SIGNAL_SIGTERM"})")), 15);
  EXPECT_EQ(ReadSignal(*ParseJson(R"({"signal":9})")), 9);
  EXPECT_EQ(ReadSignal(*ParseJson(R"({"signal":"SIGNAL_SIGHUP"})")).error().code(),
            Errc::kUnimplemented);
  EXPECT_FALSE(ReadInput(*ParseJson(R"({"input":{"stdin":"***"}})")));
}

TEST(ProcessShapes, EventsAreE2Bs) {
  EXPECT_EQ(EventShape(wire::Started{.pid = 7})->Write(), R"({"event":{"start":{"pid":7}}})");
  const wire::Data data{.kind = wire::DataKind::kStderr, .bytes = {'h', 'i'}};
  EXPECT_EQ(EventShape(data)->Write(), R"({"event":{"data":{"stderr":"aGk="}}})");
  const wire::Exit killed{.code = -1, .signal = 9, .status = "signal: killed"};
  EXPECT_EQ(EventShape(killed)->Write(),
            R"({"event":{"end":{"exitCode":-1,"exited":false,"status":"signal: killed",)"
            R"("error":"signal: killed"}}})");
  EXPECT_FALSE(EventShape(wire::Ok{}));
}

TEST(EntryShape, SpellsPermissionsAsGoDoes) {
  EXPECT_EQ(PermissionText({.mode = 0100644}), "-rw-r--r--");
  EXPECT_EQ(PermissionText({.mode = 040755}), "drwxr-xr-x");
  EXPECT_EQ(PermissionText({.mode = 0120777}), "Lrwxrwxrwx");
  EXPECT_EQ(PermissionText({.mode = 0104755}), "urwxr-xr-x");
  EXPECT_EQ(PermissionText({.mode = 041777}), "dtrwxrwxrwx");
}

TEST(ByteRange, TakesOneRangeThatNamesItsStart) {
  EXPECT_EQ(ParseByteRange("bytes=5-")->first, 5U);
  EXPECT_EQ(ParseByteRange("bytes=5-9")->last, 9U);
  for (const char* header : {"", "bytes=-5", "bytes=9-5", "bytes=a-b", "items=1-2", "bytes=1-2,4-5",
                             "bytes=99999999999999999999-"}) {
    EXPECT_FALSE(ParseByteRange(header)) << header;
  }
}

}  // namespace
}  // namespace soma::api
