// SPDX-License-Identifier: Apache-2.0
#include "tools/seccomp/compiler.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "tools/seccomp/policy.h"

namespace soma::seccomp {
namespace {

using Code = std::vector<sock_filter>;

// asm/unistd.h: the bit that marks a number of the x32 ABI.
constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | std::uint32_t{ENOSYS};
// A conditional jump that is still to be pointed at the end of its clause.
constexpr std::uint8_t kToNextClause = 0xFF;
constexpr std::size_t kJumpMax = 0xFE;

sock_filter Statement(unsigned code, std::uint32_t k) {
  return {.code = static_cast<std::uint16_t>(code), .jt = 0, .jf = 0, .k = k};
}
sock_filter Jump(unsigned test, std::uint32_t k, std::size_t if_true, std::size_t if_false) {
  return {.code = static_cast<std::uint16_t>(BPF_JMP | test | BPF_K),
          .jt = static_cast<std::uint8_t>(if_true),
          .jf = static_cast<std::uint8_t>(if_false),
          .k = k};
}
sock_filter LoadWord(std::size_t offset) {
  return Statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter Return(std::uint32_t action) { return Statement(BPF_RET | BPF_K, action); }
sock_filter Goto(std::size_t distance) {
  return Statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(distance));
}

void Append(Code& out, const Code& more) { out.insert(out.end(), more.begin(), more.end()); }

std::uint32_t Low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t High(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

// x86-64 is little-endian: the lower half comes first.
sock_filter LoadLow(unsigned argument) {
  return LoadWord(offsetof(seccomp_data, args) + (8 * std::size_t{argument}));
}
sock_filter LoadHigh(unsigned argument) {
  return LoadWord(offsetof(seccomp_data, args) + (8 * std::size_t{argument}) + 4);
}

// "Is the value one of the set?": `found` and `missed` are what happens at the end of this piece;
// one of them is falling through (0), the other kToNextClause.
Code InSet(const Test& test) {
  const bool positive = test.comparison == Comparison::kIn;
  Code out;
  if (test.wide) {
    // All values share the upper half (checked by the caller), so it's compared once.
    out.push_back(LoadHigh(test.argument));
    if (High(test.mask) != ~0U)
      out.push_back(Statement(BPF_ALU | BPF_AND | BPF_K, High(test.mask)));
    SOMA_CHECK(positive);
    out.push_back(Jump(BPF_JEQ, High(test.values[0]), 0, kToNextClause));
  }
  out.push_back(LoadLow(test.argument));
  if (Low(test.mask) != ~0U) out.push_back(Statement(BPF_ALU | BPF_AND | BPF_K, Low(test.mask)));
  for (std::size_t i = 0; i < test.values.size(); ++i) {
    const std::size_t after = test.values.size() - 1 - i;
    if (positive) {
      out.push_back(Jump(BPF_JEQ, Low(test.values[i]), after, after == 0 ? kToNextClause : 0));
    } else {
      out.push_back(Jump(BPF_JEQ, Low(test.values[i]), kToNextClause, 0));
    }
  }
  return out;
}

Code HasBits(const Test& test) {
  const bool any = test.comparison == Comparison::kHasAny;
  const std::uint64_t mask = test.values[0];
  Code out{LoadLow(test.argument)};
  const bool two_halves = test.wide && High(mask) != 0;
  if (!two_halves) {
    out.push_back(any ? Jump(BPF_JSET, Low(mask), 0, kToNextClause)
                      : Jump(BPF_JSET, Low(mask), kToNextClause, 0));
    return out;
  }
  // Found in the lower half: skip the two instructions of the upper one.
  out.push_back(any ? Jump(BPF_JSET, Low(mask), 2, 0)
                    : Jump(BPF_JSET, Low(mask), kToNextClause, 0));
  out.push_back(LoadHigh(test.argument));
  out.push_back(any ? Jump(BPF_JSET, High(mask), 0, kToNextClause)
                    : Jump(BPF_JSET, High(mask), kToNextClause, 0));
  return out;
}

Code ClauseCode(const Clause& clause) {
  Code out;
  for (const Test& test : clause.tests) {
    const bool set = test.comparison == Comparison::kIn || test.comparison == Comparison::kNotIn;
    Append(out, set ? InSet(test) : HasBits(test));
  }
  out.push_back(Return(clause.action));
  SOMA_CHECK(out.size() < kJumpMax);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto to_end = static_cast<std::uint8_t>(out.size() - 1 - i);
    if (BPF_CLASS(out[i].code) != BPF_JMP) continue;
    if (out[i].jt == kToNextClause) out[i].jt = to_end;
    if (out[i].jf == kToNextClause) out[i].jf = to_end;
  }
  return out;
}

// Clauses end with an unconditional one (Policy guarantees it), so control never falls out.
Code ClausesCode(const Clauses& clauses) {
  Code out;
  for (const Clause& clause : clauses) Append(out, ClauseCode(clause));
  return out;
}

struct Range {
  std::uint32_t first = 0;  // up to the next range's first
  Clauses clauses;
};

std::vector<Range> Ranges(const Policy& policy) {
  const Clauses unknown{{.action = kNoSuchCall, .tests = {}}};
  std::vector<Range> ranges;
  const auto add = [&](std::uint32_t first, const Clauses& clauses) {
    if (ranges.empty() || ranges.back().clauses != clauses) {
      ranges.push_back({.first = first, .clauses = clauses});
    }
  };
  std::uint32_t next = 0;
  for (const auto& [number, clauses] : policy.calls) {
    if (number > next) add(next, unknown);
    add(number, clauses);
    next = number + 1;
  }
  add(next, unknown);
  return ranges;
}

// The search tree over `ranges`, with the call number in the accumulator.
Code TreeCode(std::span<const Range> ranges) {
  if (ranges.size() == 1) return ClausesCode(ranges[0].clauses);
  const std::size_t middle = ranges.size() / 2;
  const Code below = TreeCode(ranges.first(middle));
  const Code above = TreeCode(ranges.subspan(middle));
  Code out;
  if (below.size() <= kJumpMax) {
    out.push_back(Jump(BPF_JGE, ranges[middle].first, below.size(), 0));
  } else {
    out.push_back(Jump(BPF_JGE, ranges[middle].first, 0, 1));
    out.push_back(Goto(below.size()));
  }
  Append(out, below);
  Append(out, above);
  return out;
}

Code LinearCode(const Policy& policy) {
  Code out;
  for (const auto& [number, clauses] : policy.calls) {
    const Code body = ClausesCode(clauses);
    SOMA_CHECK(body.size() <= kJumpMax);
    out.push_back(Jump(BPF_JEQ, number, 0, body.size()));
    Append(out, body);
  }
  out.push_back(Return(kNoSuchCall));
  return out;
}

// The kernel never sees a wide set with different upper halves from us, nor an empty one.
Status CheckTest(const Test& test) {
  const bool set = test.comparison == Comparison::kIn || test.comparison == Comparison::kNotIn;
  if (!set || !test.wide) return {};
  const bool same_half = std::ranges::all_of(
      test.values, [&](std::uint64_t value) { return High(value) == High(test.values[0]); });
  if (!same_half || test.comparison == Comparison::kNotIn) {
    return Fail(Errc::kUnimplemented, "64-bit sets need `in` and one upper half");
  }
  return {};
}

}  // namespace

Result<std::vector<sock_filter>> Compile(const Policy& policy, Shape shape) {
  for (const auto& [number, clauses] : policy.calls) {
    for (const Clause& clause : clauses) {
      for (const Test& test : clause.tests) SOMA_TRY_WHILE(CheckTest(test), CallName(number));
    }
  }
  Code out{
      LoadWord(offsetof(seccomp_data, arch)), Jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
      Return(SECCOMP_RET_KILL_PROCESS),       LoadWord(offsetof(seccomp_data, nr)),
      Jump(BPF_JGE, kX32Bit, 0, 3),           Jump(BPF_JEQ, ~0U, 1, 0),
      Return(SECCOMP_RET_KILL_PROCESS),       Return(kNoSuchCall),
  };
  Append(out, shape == Shape::kTree ? TreeCode(Ranges(policy)) : LinearCode(policy));
  if (out.size() > BPF_MAXINSNS) {
    return Fail(Errc::kOutOfRange, StrCat("the program has ", out.size(), " instructions"));
  }
  return out;
}

}  // namespace soma::seccomp
