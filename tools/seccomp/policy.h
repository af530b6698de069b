// SPDX-License-Identifier: Apache-2.0
// The readable seccomp lists (data/seccomp/*.list) as data. Build-time only: trusted input, but
// strict, because a typo here would be a hole.
//
// A list is lines; `#` begins a comment. Every line is one of
//   include FILE                     the lines of another list of the same folder, here
//   number NAME N                    a call that libseccomp doesn't know by name yet
//   ACTION NAME...                   unconditionally
//   ACTION NAME... when TEST [and TEST]...
// ACTION is `allow`, `deny` (EPERM), `errno EXXX`, `notify` or `kill` (the process). A TEST looks
// at one argument:
//   int0 in {A, B}      int0 not-in {A}       int0 masked MASK in {A, B}
//   int0 has-any MASK   int0 has-none MASK
// `intN` is argument N as the kernel sees an int or unsigned int there: the lower 32 bits, whatever
// the upper ones hold. `longN` is all 64 bits. Use `int` exactly where the kernel's prototype has a
// 32-bit type, else the upper half would be a way around (CVE-2019-10063 was that, with ioctl).
// Values are C constants or numbers, joined by `|`.
//
// The clauses of one call are tried in order, the first that fits decides; a call with clauses of
// which none fits answers EPERM. A clause after an unconditional one is an error. Calls that the
// lists name nowhere answer EPERM when the kernel has them (by libseccomp's table and the `number`
// lines) and ENOSYS when nobody knows them.
#ifndef SOMA_TOOLS_SECCOMP_POLICY_H_
#define SOMA_TOOLS_SECCOMP_POLICY_H_

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace soma::seccomp {

enum class Comparison : std::uint8_t { kIn, kNotIn, kHasAny, kHasNone };

struct Test {
  unsigned argument = 0;  // 0..5
  bool wide = false;      // all 64 bits
  Comparison comparison = Comparison::kIn;
  std::uint64_t mask = ~std::uint64_t{0};  // for kIn and kNotIn: applied before the comparison
  std::vector<std::uint64_t> values;       // for kHasAny, kHasNone: one value, the mask

  friend auto operator<=>(const Test&, const Test&) = default;
};

struct Clause {
  std::uint32_t action = 0;  // a SECCOMP_RET_ value, with its data
  std::vector<Test> tests;   // all must hold; empty: always

  friend auto operator<=>(const Clause&, const Clause&) = default;
};

using Clauses = std::vector<Clause>;

struct Policy {
  // By call number. Every call that is known has an entry; those that no line names have one clause
  // with EPERM.
  std::map<std::uint32_t, Clauses> calls;
};

// Reads a list with what it includes.
Result<Policy> LoadPolicy(const std::filesystem::path& list);

// The same with an overlay of `notify` lines: where `base` would allow a call and the overlay's
// tests hold, the call notifies instead. The overlay can't allow anything.
Result<Policy> LoadPolicyWithNotify(const std::filesystem::path& list,
                                    const std::filesystem::path& overlay);

// What the kernel does with a call under `policy`, computed without BPF: the reference for tests.
std::uint32_t Decide(const Policy& policy, std::uint32_t number,
                     const std::uint64_t (&arguments)[6]);

// A call's number by name, as the lists' `number` lines and libseccomp know it; for tests and
// tools.
std::string CallName(std::uint32_t number);

}  // namespace soma::seccomp

#endif  // SOMA_TOOLS_SECCOMP_POLICY_H_
