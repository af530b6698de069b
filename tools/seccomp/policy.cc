// SPDX-License-Identifier: Apache-2.0
#include "tools/seccomp/policy.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "tools/seccomp/constants.h"

namespace soma::seccomp {
namespace {

namespace fs = std::filesystem;

// Far above any kernel's table (6.18 ends at 469), far below x32's bit.
constexpr std::uint32_t kNumberMax = 1023;
constexpr int kIncludeDepthMax = 4;

// A line's words; braces and commas are words of their own.
std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : line.substr(0, line.find('#'))) {
    if (c == ' ' || c == '\t' || c == '\r') {
      finish();
    } else if (c == '{' || c == '}' || c == ',') {
      finish();
      words.emplace_back(1, c);
    } else {
      word += c;
    }
  }
  finish();
  return words;
}

class Loader {
 public:
  Status Load(const fs::path& list, int depth) {
    if (depth > kIncludeDepthMax) return Fail(Errc::kInvalidArgument, "includes nest too deeply");
    std::ifstream file(list);
    if (!file) return Fail(Errc::kNotFound, StrCat("can't read ", list.string()));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      SOMA_TRY_WHILE(Line(list, Words(line), depth), StrCat(list.string(), ":", number));
    }
    return {};
  }

  std::map<std::uint32_t, Clauses> calls;
  std::map<std::string, std::uint32_t, std::less<>> extra_numbers;

 private:
  Status Line(const fs::path& list, std::span<const std::string> words, int depth) {
    if (words.empty()) return {};
    if (words[0] == "include" && words.size() == 2) {
      return Load(list.parent_path() / words[1], depth + 1);
    }
    if (words[0] == "number" && words.size() == 3) {
      const auto number = ParseInt<std::uint32_t>(words[2]);
      if (!number || *number > kNumberMax) return Fail(Errc::kInvalidArgument, "bad number");
      extra_numbers[words[1]] = *number;
      return {};
    }
    return Rule(words);
  }

  Status Rule(std::span<const std::string> words) {
    SOMA_ASSIGN(const std::uint32_t action, Action(words));
    std::vector<std::uint32_t> numbers;
    while (!words.empty() && words[0] != "when") {
      SOMA_ASSIGN(const std::uint32_t number, Number(words[0]));
      numbers.push_back(number);
      words = words.subspan(1);
    }
    if (numbers.empty()) return Fail(Errc::kInvalidArgument, "no call is named");
    SOMA_ASSIGN(const std::vector<Test> tests, Tests(words));
    for (const std::uint32_t number : numbers) {
      Clauses& clauses = calls[number];
      if (!clauses.empty() && clauses.back().tests.empty()) {
        return Fail(Errc::kInvalidArgument, "an earlier line has decided about this call");
      }
      clauses.push_back({.action = action, .tests = tests});
    }
    return {};
  }

  // Takes the action's words away.
  static Result<std::uint32_t> Action(std::span<const std::string>& words) {
    const std::string verb = words[0];
    words = words.subspan(1);
    if (verb == "allow") return SECCOMP_RET_ALLOW;
    if (verb == "deny") return SECCOMP_RET_ERRNO | std::uint32_t{EPERM};
    if (verb == "notify") return SECCOMP_RET_USER_NOTIF;
    if (verb == "kill") return SECCOMP_RET_KILL_PROCESS;
    if (verb == "errno" && !words.empty()) {
      const auto value = ParseErrno(words[0]);
      if (!value) return Fail(Errc::kInvalidArgument, StrCat("unknown errno ", words[0]));
      words = words.subspan(1);
      return SECCOMP_RET_ERRNO | std::uint32_t{*value};
    }
    return Fail(Errc::kInvalidArgument, StrCat("unknown action ", verb));
  }

  Result<std::uint32_t> Number(const std::string& name) const {
    if (const auto it = extra_numbers.find(name); it != extra_numbers.end()) return it->second;
    const int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name.c_str());
    if (number < 0) return Fail(Errc::kInvalidArgument, StrCat("unknown call ", name));
    return static_cast<std::uint32_t>(number);
  }

  static Result<std::vector<Test>> Tests(std::span<const std::string> words) {
    std::vector<Test> tests;
    while (!words.empty()) {
      const bool joined = words[0] == (tests.empty() ? "when" : "and");
      if (!joined) return Fail(Errc::kInvalidArgument, StrCat("unexpected ", words[0]));
      words = words.subspan(1);
      SOMA_ASSIGN(Test test, OneTest(words));
      tests.push_back(std::move(test));
    }
    return tests;
  }

  static std::optional<std::string> Next(std::span<const std::string>& words) {
    if (words.empty()) return std::nullopt;
    std::string word = words[0];
    words = words.subspan(1);
    return word;
  }

  static Result<std::uint64_t> NextValue(std::span<const std::string>& words) {
    const auto word = Next(words);
    const auto value = word ? ParseValue(*word) : std::nullopt;
    if (!value) return Fail(Errc::kInvalidArgument, StrCat("no value: ", word.value_or("")));
    return *value;
  }

  static Result<Test> OneTest(std::span<const std::string>& words) {
    Test test;
    const std::string argument = Next(words).value_or("");
    test.wide = argument.starts_with("long");
    const std::string_view digit = std::string_view(argument).substr(
        std::min<std::size_t>(argument.size(), test.wide ? 4 : 3));
    const auto index = ParseInt<unsigned>(digit);
    if ((!test.wide && !argument.starts_with("int")) || !index || *index > 5) {
      return Fail(Errc::kInvalidArgument, StrCat("not an argument: ", argument));
    }
    test.argument = *index;
    std::string verb = Next(words).value_or("");
    if (verb == "has-any" || verb == "has-none") {
      test.comparison = verb == "has-any" ? Comparison::kHasAny : Comparison::kHasNone;
      SOMA_ASSIGN(const std::uint64_t mask, NextValue(words));
      test.values.push_back(mask);
      return Checked(std::move(test));
    }
    if (verb == "masked") {
      SOMA_ASSIGN(test.mask, NextValue(words));
      verb = Next(words).value_or("");
    }
    if (verb != "in" && verb != "not-in") {
      return Fail(Errc::kInvalidArgument, StrCat("unknown comparison ", verb));
    }
    test.comparison = verb == "in" ? Comparison::kIn : Comparison::kNotIn;
    SOMA_TRY(ValueSet(words, test));
    return Checked(std::move(test));
  }

  // "{ A , B }"
  static Status ValueSet(std::span<const std::string>& words, Test& test) {
    if (Next(words) != "{") return Fail(Errc::kInvalidArgument, "expected {");
    while (true) {
      SOMA_ASSIGN(const std::uint64_t value, NextValue(words));
      test.values.push_back(value);
      const auto word = Next(words);
      if (word == "}") return {};
      if (word != ",") return Fail(Errc::kInvalidArgument, "expected , or }");
    }
  }

  // A 32-bit test against a value that doesn't fit would never hold, or always: a typo.
  static Result<Test> Checked(Test test) {
    if (test.wide) return test;
    test.mask &= 0xFFFFFFFFU;
    for (const std::uint64_t value : test.values) {
      if (value > 0xFFFFFFFFU) return Fail(Errc::kInvalidArgument, "a value exceeds 32 bits");
    }
    return test;
  }
};

// Every call that exists gets an entry, so that "refused" and "unknown" differ.
Policy Complete(Loader loader) {
  const Clause refused{.action = SECCOMP_RET_ERRNO | std::uint32_t{EPERM}, .tests = {}};
  for (std::uint32_t number = 0; number <= kNumberMax; ++number) {
    if (!CallName(number).empty()) loader.calls[number];
  }
  for (const auto& [name, number] : loader.extra_numbers) loader.calls[number];
  for (auto& [number, clauses] : loader.calls) {
    if (clauses.empty() || !clauses.back().tests.empty()) clauses.push_back(refused);
  }
  return {.calls = std::move(loader.calls)};
}

bool Holds(const Test& test, const std::uint64_t (&arguments)[6]) {
  std::uint64_t value = arguments[test.argument];
  if (!test.wide) value &= 0xFFFFFFFFU;
  switch (test.comparison) {
    case Comparison::kHasAny:
      return (value & test.values[0]) != 0;
    case Comparison::kHasNone:
      return (value & test.values[0]) == 0;
    case Comparison::kIn:
      return std::ranges::find(test.values, value & test.mask) != test.values.end();
    case Comparison::kNotIn:
      return std::ranges::find(test.values, value & test.mask) == test.values.end();
  }
  return false;
}

}  // namespace

Result<Policy> LoadPolicy(const std::filesystem::path& list) {
  Loader loader;
  SOMA_TRY(loader.Load(list, 0));
  return Complete(std::move(loader));
}

Result<Policy> LoadPolicyWithNotify(const std::filesystem::path& list,
                                    const std::filesystem::path& overlay) {
  Loader loader;
  SOMA_TRY(loader.Load(list, 0));
  Loader notify;
  notify.extra_numbers = loader.extra_numbers;
  SOMA_TRY(notify.Load(overlay, 0));
  for (const auto& [number, overlay_clauses] : notify.calls) {
    Clauses combined;
    for (const Clause& clause : loader.calls[number]) {
      for (const Clause& extra : overlay_clauses) {
        if (extra.action != SECCOMP_RET_USER_NOTIF) {
          return Fail(Errc::kInvalidArgument, "an overlay holds only notify lines");
        }
        if (clause.action != SECCOMP_RET_ALLOW) continue;
        Clause both = extra;
        both.tests.insert(both.tests.begin(), clause.tests.begin(), clause.tests.end());
        combined.push_back(std::move(both));
      }
      combined.push_back(clause);
    }
    // What follows an unconditional clause can't be reached.
    const auto last =
        std::ranges::find_if(combined, [](const Clause& c) { return c.tests.empty(); });
    if (last != combined.end()) combined.erase(std::next(last), combined.end());
    loader.calls[number] = std::move(combined);
  }
  return Complete(std::move(loader));
}

std::uint32_t Decide(const Policy& policy, std::uint32_t number,
                     const std::uint64_t (&arguments)[6]) {
  const auto it = policy.calls.find(number);
  if (it == policy.calls.end()) return SECCOMP_RET_ERRNO | std::uint32_t{ENOSYS};
  for (const Clause& clause : it->second) {
    if (std::ranges::all_of(clause.tests,
                            [&](const Test& test) { return Holds(test, arguments); })) {
      return clause.action;
    }
  }
  return SECCOMP_RET_ERRNO | std::uint32_t{EPERM};
}

std::string CallName(std::uint32_t number) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, static_cast<int>(number));
  if (name == nullptr) return {};
  std::string copy = name;
  std::free(name);
  return copy;
}

}  // namespace soma::seccomp
