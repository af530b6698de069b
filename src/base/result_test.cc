// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/error.h"

namespace soma {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail(Errc::kInvalidArgument, "odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  SOMA_ASSIGN(const int half, Half(n));
  SOMA_TRY_WHILE(Half(half), "halving again");
  return Half(half);
}

TEST(Result, PassesValuesAndErrorsUpwards) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(3).error().message(), "odd");
  EXPECT_EQ(Quarter(6).error().message(), "halving again: odd");
}

TEST(Result, MovesMoveOnlyValues) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto use = [&]() -> Result<int> {
    SOMA_ASSIGN(const auto pointer, make());
    return *pointer;
  };
  EXPECT_EQ(use().value(), 7);
}

TEST(Error, FromErrnoKeepsNumberAndDerivesCode) {
  const Error error = Error::FromErrno(ENOENT, "open /x");
  EXPECT_EQ(error.code(), Errc::kNotFound);
  EXPECT_EQ(error.errno_value(), ENOENT);
  EXPECT_EQ(error.message(), "open /x: No such file or directory");
  EXPECT_EQ(ErrnoName(ENOENT), "ENOENT");
}

}  // namespace
}  // namespace soma
