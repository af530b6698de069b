// SPDX-License-Identifier: Apache-2.0
// A small BPF machine for tests: what the kernel would answer, computed without loading anything.
#ifndef SOMA_TOOLS_SECCOMP_INTERPRETER_H_
#define SOMA_TOOLS_SECCOMP_INTERPRETER_H_

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace soma::seccomp {

// The value of the RET that is reached; nothing for whatever the kernel's checker would refuse
// (unknown instruction, jump out of the program, misaligned or out-of-range load).
inline std::optional<std::uint32_t> Interpret(std::span<const sock_filter> program,
                                              const seccomp_data& data) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& i = program[at];
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (i.k % 4 != 0 || i.k + 4 > sizeof data) return std::nullopt;
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + i.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= i.k;
        break;
      case BPF_JMP | BPF_JA:
        at += i.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += accumulator == i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += accumulator >= i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        at += (accumulator & i.k) != 0 ? i.jt : i.jf;
        break;
      case BPF_RET | BPF_K:
        return i.k;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace soma::seccomp

#endif  // SOMA_TOOLS_SECCOMP_INTERPRETER_H_
