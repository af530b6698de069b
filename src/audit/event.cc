// SPDX-License-Identifier: Apache-2.0
#include "audit/event.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "audit/json_text.h"
#include "audit/time_text.h"
#include "base/check.h"
#include "base/error.h"
#include "base/result.h"

namespace soma::audit {

namespace {

constexpr std::array<std::string_view, 14> kKindNames = {
    "start",  "end",        "policy_decision", "policy_change",  "refusal",
    "egress", "key_change", "approval",        "secret_release", "template",
    "server", "sandbox",    "tool_call",       "journal"};
constexpr std::array<std::string_view, 2> kSourceNames = {"host", "guest"};
constexpr std::array<std::string_view, 4> kVerdictNames = {"", "allow", "deny", "ask"};

// The text members in their written order.
struct TextMember {
  std::string_view key;
  std::string Event::* member;
  std::size_t bytes_max;
};
constexpr std::array<TextMember, 7> kTextMembers = {{
    {"run", &Event::run, kIdBytesMax},
    {"sandbox", &Event::sandbox, kIdBytesMax},
    {"tenant", &Event::tenant, kIdBytesMax},
    {"subject", &Event::subject, kSubjectBytesMax},
    {"object", &Event::object, kObjectBytesMax},
    {"rule", &Event::rule, kRuleBytesMax},
    {"remedy", &Event::remedy, kRemedyBytesMax},
}};

template <std::size_t N>
std::string_view NameAt(const std::array<std::string_view, N>& names, std::size_t index) {
  SOMA_CHECK(index < N);
  return names[index];
}

// The index of the name that comes next, closing quote included; N and a failed reader if none.
template <std::size_t N>
std::size_t TakeName(TextReader& in, const std::array<std::string_view, N>& names) {
  const std::string name = in.String(32);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) in.MarkInvalid();
  return static_cast<std::size_t>(found - names.begin());
}

bool IsFieldKey(std::string_view key) {
  return !key.empty() && key.size() <= kFieldKeyBytesMax &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string_view::npos;
}

// Appends the text, cut to its bound; true when something was cut off.
bool AppendBounded(std::string& out, std::string_view text, std::size_t bytes_max) {
  AppendJsonString(out, text.substr(0, bytes_max));
  return text.size() > bytes_max;
}

// Appends `,"fields":{…}` if there are any; true when some were dropped or cut.
bool AppendFields(std::string& out, const Event& event) {
  if (event.fields.empty()) return false;
  bool cut = false;
  std::size_t count = 0;
  for (const auto& [key, value] : event.fields) {
    if (!IsFieldKey(key) || count == kFieldsMax) {
      cut = true;
      break;
    }
    out += count == 0 ? ",\"fields\":{" : ",";
    AppendJsonString(out, key);
    out += ':';
    cut |= AppendBounded(out, value, kFieldValueBytesMax);
    ++count;
  }
  if (count > 0) out += '}';
  return cut;
}

void DecodeFields(TextReader& in, Event& event) {
  if (!in.Take(",\"fields\":{")) return;
  do {
    std::string key = in.String(kFieldKeyBytesMax);
    in.Expect(":");
    std::string value = in.String(kFieldValueBytesMax);
    if (!IsFieldKey(key) || event.fields.size() == kFieldsMax) in.MarkInvalid();
    event.fields.emplace_back(std::move(key), std::move(value));
  } while (in.Take(","));
  in.Expect("}");
}

}  // namespace

std::string_view KindName(EventKind kind) {
  return NameAt(kKindNames, static_cast<std::size_t>(kind));
}
std::string_view SourceName(Source source) {
  return NameAt(kSourceNames, static_cast<std::size_t>(source));
}
std::string_view VerdictName(Verdict verdict) {
  return NameAt(kVerdictNames, static_cast<std::size_t>(verdict));
}

std::string EncodeEvent(const Event& event) {
  std::string out;
  out.reserve(512);
  out += "\"time\":\"";
  out += FormatTime(event.time);
  out += "\",\"kind\":\"";
  out += KindName(event.kind);
  out += "\",\"source\":\"";
  out += SourceName(event.source);
  out += '"';
  if (event.verdict != Verdict::kNone) {
    out += ",\"verdict\":\"";
    out += VerdictName(event.verdict);
    out += '"';
  }
  bool cut = event.cut;
  for (const TextMember& text : kTextMembers) {
    const std::string& value = event.*text.member;
    if (value.empty()) continue;
    out += ",\"";
    out += text.key;
    out += "\":";
    cut |= AppendBounded(out, value, text.bytes_max);
  }
  cut |= AppendFields(out, event);
  if (cut) out += ",\"cut\":true";
  return out;
}

Result<Event> DecodeEvent(std::string_view members) {
  Event event;
  TextReader in(members);
  in.Expect("\"time\":\"");
  if (const auto time = ParseTime(in.Raw(kTimeTextBytes))) {
    event.time = *time;
  } else {
    in.MarkInvalid();
  }
  in.Expect("\",\"kind\":");
  event.kind = static_cast<EventKind>(TakeName(in, kKindNames));
  in.Expect(",\"source\":");
  event.source = static_cast<Source>(TakeName(in, kSourceNames));
  if (in.Take(",\"verdict\":")) event.verdict = static_cast<Verdict>(TakeName(in, kVerdictNames));
  for (const TextMember& text : kTextMembers) {
    if (!in.Take(std::string(",\"").append(text.key).append("\":"))) continue;
    event.*text.member = in.String(text.bytes_max);
  }
  DecodeFields(in, event);
  event.cut = in.Take(",\"cut\":true");
  // Members that are empty but written, and the like, are not what EncodeEvent writes.
  if (!in.AtEnd() || EncodeEvent(event) != members) {
    return Fail(Errc::kInvalidArgument, "not an event in canonical form");
  }
  return event;
}

}  // namespace soma::audit
