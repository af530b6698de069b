// SPDX-License-Identifier: Apache-2.0
#include "parse/json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::parse {
namespace {

namespace bj = boost::json;

// Turns the parser's events into a Json. `failure` says why an event handler stopped.
class Handler {
 public:
  // Read by Boost.JSON; they bound what it accepts without asking us.
  // NOLINTBEGIN(readability-identifier-naming): Boost.JSON looks for these names.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::size_t{1} << 16;
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
  // NOLINTEND(readability-identifier-naming)

  explicit Handler(const JsonLimits& limits) : limits_(limits) {}

  Json TakeRoot() { return std::move(root_); }
  const std::string& failure() const { return failure_; }

  bool on_document_begin(bj::error_code& /*ec*/) { return true; }
  bool on_document_end(bj::error_code& /*ec*/) { return true; }
  bool on_object_begin(bj::error_code& ec) { return Open(Json::MakeObject(), ec); }
  bool on_object_end(std::size_t /*n*/, bj::error_code& ec) { return Close(ec); }
  bool on_array_begin(bj::error_code& ec) { return Open(Json::MakeArray(), ec); }
  bool on_array_end(std::size_t /*n*/, bj::error_code& ec) { return Close(ec); }
  bool on_key_part(bj::string_view s, std::size_t /*n*/, bj::error_code& /*ec*/) {
    text_.append(s.data(), s.size());
    return true;
  }
  bool on_key(bj::string_view s, std::size_t /*n*/, bj::error_code& ec) {
    text_.append(s.data(), s.size());
    const Json& object = stack_.back().value;
    if (object.AsObject()->size() >= limits_.members_max) return Stop("too many members", ec);
    if (object.Find(text_) != nullptr) {
      return Stop(StrCat("the name \"", EscapeForTerminal(text_), "\" is given twice"), ec);
    }
    stack_.back().key = std::move(text_);
    text_.clear();
    return true;
  }
  bool on_string_part(bj::string_view s, std::size_t /*n*/, bj::error_code& /*ec*/) {
    text_.append(s.data(), s.size());
    return true;
  }
  bool on_string(bj::string_view s, std::size_t /*n*/, bj::error_code& ec) {
    text_.append(s.data(), s.size());
    std::string text = std::move(text_);
    text_.clear();
    return Add(Json(std::move(text)), ec);
  }
  bool on_number_part(bj::string_view /*s*/, bj::error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t i, bj::string_view /*s*/, bj::error_code& ec) {
    return Add(Json(i), ec);
  }
  bool on_uint64(std::uint64_t u, bj::string_view /*s*/, bj::error_code& ec) {
    return Add(Json(u), ec);
  }
  bool on_double(double d, bj::string_view /*s*/, bj::error_code& ec) { return Add(Json(d), ec); }
  bool on_bool(bool b, bj::error_code& ec) { return Add(Json(b), ec); }
  bool on_null(bj::error_code& ec) { return Add(Json(), ec); }
  bool on_comment_part(bj::string_view /*s*/, bj::error_code& /*ec*/) { return true; }
  bool on_comment(bj::string_view /*s*/, bj::error_code& /*ec*/) { return true; }

 private:
  struct Level {
    Json value;
    std::string key;
  };

  bool Stop(std::string why, bj::error_code& ec) {
    failure_ = std::move(why);
    ec = bj::error::syntax;
    return false;
  }
  bool Count(bj::error_code& ec) {
    if (++values_ > limits_.values_max) return Stop("too many values", ec);
    return true;
  }
  bool Open(Json container, bj::error_code& ec) {
    if (!Count(ec)) return false;
    stack_.push_back({std::move(container), {}});
    return true;
  }
  bool Close(bj::error_code& ec) {
    Json done = std::move(stack_.back().value);
    stack_.pop_back();
    return Place(std::move(done), ec);
  }
  bool Add(Json value, bj::error_code& ec) { return Count(ec) && Place(std::move(value), ec); }
  bool Place(Json value, bj::error_code& /*ec*/) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (stack_.back().value.is_object()) {
      stack_.back().value.Set(stack_.back().key, std::move(value));
    } else {
      stack_.back().value.Append(std::move(value));
    }
    return true;
  }

  const JsonLimits& limits_;
  std::vector<Level> stack_;
  std::string text_;
  std::string failure_;
  std::size_t values_ = 0;
  Json root_;
};

void WriteEscaped(std::string& out, unsigned char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
  }
}

// The length of the UTF-8 sequence that `text` begins with, 0 when it begins with none.
std::size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  return IsValidUtf8(text.substr(0, length)) ? length : 0;
}

void WriteString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F) {
      WriteEscaped(out, c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void WriteDouble(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void WriteValue(std::string& out, const Json& value) {
  if (const auto* text = value.AsString()) {
    WriteString(out, *text);
  } else if (const auto* array = value.AsArray()) {
    out += '[';
    for (const Json& item : *array) {
      if (&item != array->data()) out += ',';
      WriteValue(out, item);
    }
    out += ']';
  } else if (const auto* object = value.AsObject()) {
    out += '{';
    for (const JsonMember& member : *object) {
      if (&member != object->data()) out += ',';
      WriteString(out, member.name);
      out += ':';
      WriteValue(out, member.value);
    }
    out += '}';
  } else if (const auto flag = value.AsBool()) {
    out += *flag ? "true" : "false";
  } else if (const auto integer = value.AsInt()) {
    out += StrCat(*integer);
  } else if (const auto number = value.AsDouble()) {
    WriteDouble(out, *number);
  } else {
    out += "null";
  }
}

// The member if it is there and not null.
const Json* Present(const Json& object, std::string_view name) {
  const Json* found = object.Find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::unexpected<Error> WrongKind(std::string_view name, std::string_view wanted,
                                 const Json& found) {
  return Fail(Errc::kInvalidArgument,
              StrCat("\"", name, "\" must be ", wanted, ", not ", found.KindName()));
}

}  // namespace

Json::Json(std::uint64_t value) {
  if (std::in_range<std::int64_t>(value)) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = static_cast<double>(value);
  }
}
Json::Json() = default;
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(bool value) : value_(value) {}
Json::Json(std::int64_t value) : value_(value) {}
Json::Json(int value) : value_(std::int64_t{value}) {}
Json::Json(double value) : value_(value) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}
Json Json::MakeArray() { return Json(Array{}); }
Json Json::MakeObject() { return Json(Object{}); }

bool Json::is_null() const { return std::holds_alternative<std::monostate>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }
const std::string* Json::AsString() const { return std::get_if<std::string>(&value_); }
const Json::Array* Json::AsArray() const { return std::get_if<Array>(&value_); }
const Json::Object* Json::AsObject() const { return std::get_if<Object>(&value_); }

std::optional<bool> Json::AsBool() const {
  const bool* found = std::get_if<bool>(&value_);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<std::int64_t> Json::AsInt() const {
  const auto* found = std::get_if<std::int64_t>(&value_);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<double> Json::AsDouble() const {
  if (const auto integer = AsInt()) return static_cast<double>(*integer);
  const auto* found = std::get_if<double>(&value_);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

const Json* Json::Find(std::string_view name) const {
  const Object* object = AsObject();
  if (object == nullptr) return nullptr;
  for (const JsonMember& member : *object) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

Json& Json::Set(std::string_view name, Json value) {
  if (!is_object()) value_ = Object{};
  auto& object = std::get<Object>(value_);
  for (JsonMember& member : object) {
    if (member.name == name) {
      member.value = std::move(value);
      return *this;
    }
  }
  object.push_back({std::string(name), std::move(value)});
  return *this;
}

Json& Json::Append(Json value) {
  if (AsArray() == nullptr) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

std::string_view Json::KindName() const {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "a number", "a number",
                                                "a string", "an array",  "an object"};
  return kNames[value_.index()];
}

std::string Json::Write() const {
  std::string out;
  WriteValue(out, *this);
  return out;
}

Result<Json> ParseJson(std::string_view text, const JsonLimits& limits, std::size_t* failed_at) {
  if (text.size() > limits.bytes_max) {
    return Fail(Errc::kOutOfRange,
                StrCat("JSON of ", text.size(), " bytes; the limit is ", limits.bytes_max));
  }
  try {
    bj::parse_options options;
    options.max_depth = limits.depth_max;
    bj::basic_parser<Handler> parser(options, limits);
    bj::error_code ec;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
    if (!ec && used < text.size()) ec = bj::error::extra_data;
    if (!ec) return parser.handler().TakeRoot();
    if (failed_at != nullptr) *failed_at = used;
    const std::string& own = parser.handler().failure();
    return Fail(Errc::kInvalidArgument,
                StrCat("invalid JSON at byte ", used, ": ", own.empty() ? ec.message() : own));
  } catch (const std::exception& e) {
    return Fail(Errc::kInternal, StrCat("JSON parser: ", std::string_view(e.what())));
  }
}

Result<std::optional<std::string>> OptionalString(const Json& object, std::string_view name) {
  const Json* found = Present(object, name);
  if (found == nullptr) return std::nullopt;
  if (found->AsString() == nullptr) return WrongKind(name, "a string", *found);
  return *found->AsString();
}

Result<std::optional<std::int64_t>> OptionalInt(const Json& object, std::string_view name) {
  const Json* found = Present(object, name);
  if (found == nullptr) return std::nullopt;
  if (!found->AsInt()) return WrongKind(name, "an integer", *found);
  return found->AsInt();
}

Result<std::optional<bool>> OptionalBool(const Json& object, std::string_view name) {
  const Json* found = Present(object, name);
  if (found == nullptr) return std::nullopt;
  if (!found->AsBool()) return WrongKind(name, "a boolean", *found);
  return found->AsBool();
}

Result<StringPairs> OptionalStringMap(const Json& object, std::string_view name) {
  StringPairs pairs;
  const Json* found = Present(object, name);
  if (found == nullptr) return pairs;
  if (found->AsObject() == nullptr) return WrongKind(name, "an object", *found);
  for (const JsonMember& member : *found->AsObject()) {
    const std::string* text = member.value.AsString();
    if (text == nullptr) return WrongKind(StrCat(name, ".", member.name), "a string", member.value);
    pairs.emplace_back(member.name, *text);
  }
  return pairs;
}

Result<std::vector<std::string>> OptionalStringList(const Json& object, std::string_view name) {
  std::vector<std::string> list;
  const Json* found = Present(object, name);
  if (found == nullptr) return list;
  if (found->AsArray() == nullptr) return WrongKind(name, "an array", *found);
  for (const Json& item : *found->AsArray()) {
    if (item.AsString() == nullptr) return WrongKind(name, "an array of strings", *found);
    list.push_back(*item.AsString());
  }
  return list;
}

}  // namespace soma::parse
