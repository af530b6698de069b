// SPDX-License-Identifier: Apache-2.0
#include "tools/seccomp/compiler.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tools/seccomp/interpreter.h"
#include "tools/seccomp/policy.h"

namespace soma::seccomp {
namespace {

constexpr std::uint32_t kEnosys = SECCOMP_RET_ERRNO | std::uint32_t{ENOSYS};

struct Named {
  std::string list;
  bool notify = false;
};

Policy Load(const Named& named) {
  const std::string folder = SOMA_SECCOMP_LISTS;
  const std::string list = folder + "/" + named.list + ".list";
  const auto policy =
      named.notify ? LoadPolicyWithNotify(list, folder + "/notify.list") : LoadPolicy(list);
  EXPECT_TRUE(policy) << policy.error().message();
  return *policy;
}

class EveryList : public testing::TestWithParam<Named> {};

// Values that matter for an argument: those in the list's tests, one bit and one step beside them,
// and the same with something in the upper half.
std::vector<std::uint64_t> Interesting(const Clauses& clauses) {
  std::set<std::uint64_t> values{0, 1, ~std::uint64_t{0}, 0xFFFFFFFFU, 0x100000000U};
  for (const Clause& clause : clauses) {
    for (const Test& test : clause.tests) {
      for (const std::uint64_t value : test.values) {
        for (const std::uint64_t variant :
             {value, value + 1, value - 1, value | 0x4000000000000000U, value ^ 0x10U,
              value & (~value + 1), ~value}) {
          values.insert(variant);
        }
      }
    }
  }
  return {values.begin(), values.end()};
}

void ExpectAgreement(const Policy& policy, const std::vector<sock_filter>& tree,
                     const std::vector<sock_filter>& linear, const seccomp_data& data) {
  std::uint64_t arguments[6];
  for (int i = 0; i < 6; ++i) arguments[i] = data.args[i];
  const auto number = static_cast<std::uint32_t>(data.nr);
  const std::uint32_t expected = Decide(policy, number, arguments);
  ASSERT_EQ(Interpret(tree, data), expected) << CallName(number) << " " << number;
  ASSERT_EQ(Interpret(linear, data), expected) << CallName(number) << " " << number;
}

// For every number up to 1,100 and many arguments: the tree, the linear program and the list agree.
TEST_P(EveryList, TreeAndLinearDecideAsTheList) {
  const Policy policy = Load(GetParam());
  const auto tree = Compile(policy, Shape::kTree);
  const auto linear = Compile(policy, Shape::kLinear);
  ASSERT_TRUE(tree && linear);
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed): a repeatable test
  for (int number = 0; number < 1100; ++number) {
    const auto it = policy.calls.find(static_cast<std::uint32_t>(number));
    const std::vector<std::uint64_t> values =
        Interesting(it == policy.calls.end() ? Clauses{} : it->second);
    for (int round = 0; round < 300; ++round) {
      seccomp_data data{.nr = number, .arch = AUDIT_ARCH_X86_64};
      for (auto& argument : data.args) argument = values[random() % values.size()];
      ASSERT_NO_FATAL_FAILURE(ExpectAgreement(policy, *tree, *linear, data));
    }
  }
}

TEST_P(EveryList, ForeignArchitecturesAreKilled) {
  const Policy policy = Load(GetParam());
  const auto tree = Compile(policy, Shape::kTree);
  ASSERT_TRUE(tree);
  for (int number = -1; number < 600; ++number) {
    const seccomp_data i386{.nr = number, .arch = AUDIT_ARCH_I386};
    EXPECT_EQ(Interpret(*tree, i386), SECCOMP_RET_KILL_PROCESS);
    if (number < 0) continue;
    const seccomp_data x32{.nr = number | 0x40000000, .arch = AUDIT_ARCH_X86_64};
    EXPECT_EQ(Interpret(*tree, x32), SECCOMP_RET_KILL_PROCESS);
  }
  const seccomp_data cancelled{.nr = -1, .arch = AUDIT_ARCH_X86_64};
  EXPECT_EQ(Interpret(*tree, cancelled), kEnosys);
}

TEST_P(EveryList, UnknownNumbersAnswerEnosys) {
  const Policy policy = Load(GetParam());
  const auto tree = Compile(policy, Shape::kTree);
  ASSERT_TRUE(tree);
  for (const int number : {387, 423, 470, 1000, 0x3FFFFFFF}) {
    const seccomp_data data{.nr = number, .arch = AUDIT_ARCH_X86_64};
    EXPECT_EQ(Interpret(*tree, data), kEnosys) << number;
  }
}

// Loading time is the number of instructions that the kernel simulates for all calls together.
TEST_P(EveryList, TreeIsShallow) {
  const auto tree = Compile(Load(GetParam()), Shape::kTree);
  ASSERT_TRUE(tree);
  EXPECT_LT(tree->size(), 1000U);
}

INSTANTIATE_TEST_SUITE_P(Lists, EveryList,
                         testing::Values(Named{"strict"}, Named{"strict", true}, Named{"rooted"},
                                         Named{"rooted", true}, Named{"vmm"}, Named{"server"}),
                         [](const auto& named) {
                           return named.param.list + (named.param.notify ? "_notify" : "");
                         });

// Far leaves need a long jump: a tree whose lower half exceeds the 255 instructions of a short one.
TEST(Compiler, LongJumpsReachTheirRange) {
  Policy policy;
  for (std::uint32_t number = 0; number < 400; ++number) {
    policy.calls[number] = {{.action = SECCOMP_RET_ERRNO | number, .tests = {}}};
  }
  const auto tree = Compile(policy, Shape::kTree);
  ASSERT_TRUE(tree);
  for (int number = 0; number < 400; ++number) {
    const seccomp_data data{.nr = number, .arch = AUDIT_ARCH_X86_64};
    EXPECT_EQ(Interpret(*tree, data), SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(number));
  }
}

TEST(Compiler, RefusesWideSetsWithDifferentUpperHalves) {
  Policy policy;
  policy.calls[0] = {
      {.action = SECCOMP_RET_ALLOW, .tests = {{.wide = true, .values = {1, 0x100000000U}}}}};
  EXPECT_FALSE(Compile(policy, Shape::kTree));
}

}  // namespace
}  // namespace soma::seccomp
