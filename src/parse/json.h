// SPDX-License-Identifier: Apache-2.0
// Json: a bounded JSON document, read from foreign bytes and written for foreign readers.
//
// ParseJson wraps Boost.JSON's event parser; no header of Boost and no exception leaves json.cc.
// It refuses what two readers could understand differently: a name given twice in one object,
// invalid UTF-8, anything after the document. Depth, number of values and size are bounded before
// memory is spent. Pure, any thread, untrusted input.
//
// An object keeps the order of its members; look-up is linear, which is right for the small objects
// of an API.
#ifndef SOMA_PARSE_JSON_H_
#define SOMA_PARSE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace soma::parse {

struct JsonLimits {
  std::size_t bytes_max = std::size_t{1} << 20;
  std::size_t depth_max = 32;
  std::size_t values_max = 100'000;
  // Members of one object: the check for double names is quadratic in it.
  std::size_t members_max = 1024;
};

struct JsonMember;

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  // Defined in json.cc: a member cannot be constructed before JsonMember is complete.
  Json();  // null
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  explicit Json(bool value);
  explicit Json(std::int64_t value);
  explicit Json(int value);
  explicit Json(std::uint64_t value);  // a value above INT64_MAX becomes a double
  explicit Json(double value);
  explicit Json(std::string value);
  explicit Json(std::string_view value);
  explicit Json(const char* value);
  explicit Json(Array value);
  explicit Json(Object value);
  static Json MakeArray();
  static Json MakeObject();

  bool is_null() const;
  bool is_object() const;

  // The value if it is of that kind, else nothing. Pointers live as long as this value unchanged.
  std::optional<bool> AsBool() const;
  std::optional<std::int64_t> AsInt() const;  // integers only; 3.0 is not one
  std::optional<double> AsDouble() const;     // any number
  const std::string* AsString() const;
  const Array* AsArray() const;
  const Object* AsObject() const;

  // The member of that name; nullptr when there is none or this is no object.
  const Json* Find(std::string_view name) const;

  // Builders. Set replaces or appends and makes an object out of null; Append likewise an array.
  Json& Set(std::string_view name, Json value);
  Json& Append(Json value);

  // "null", "a boolean", "a number", "a string", "an array", "an object": for error messages.
  std::string_view KindName() const;

  // Compact text, always valid UTF-8: bytes that are not become U+FFFD, because an SDK refuses
  // the whole message otherwise.
  std::string Write() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct JsonMember {
  std::string name;
  Json value;
};

// `failed_at`, if given, gets the byte up to which the text was read when it is not valid.
Result<Json> ParseJson(std::string_view text, const JsonLimits& limits = {},
                       std::size_t* failed_at = nullptr);

// Reads the optional member `name` of `object`. Absent and null are nullopt; another kind is
// kInvalidArgument naming the member and what was expected.
Result<std::optional<std::string>> OptionalString(const Json& object, std::string_view name);
Result<std::optional<std::int64_t>> OptionalInt(const Json& object, std::string_view name);
Result<std::optional<bool>> OptionalBool(const Json& object, std::string_view name);
// An object whose values are all strings, in its order; absent and null give an empty list.
using StringPairs = std::vector<std::pair<std::string, std::string>>;
Result<StringPairs> OptionalStringMap(const Json& object, std::string_view name);
// An array of strings; absent and null give an empty list.
Result<std::vector<std::string>> OptionalStringList(const Json& object, std::string_view name);

}  // namespace soma::parse

#endif  // SOMA_PARSE_JSON_H_
