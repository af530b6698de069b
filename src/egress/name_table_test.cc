// SPDX-License-Identifier: Apache-2.0
#include "egress/name_table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace soma::egress {
namespace {

TEST(NameTable, ANameKeepsItsAddressAndTheAddressItsName) {
  NameTable table;
  const auto first = table.AddressFor("a.example");
  const auto second = table.AddressFor("b.example");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, 0xc6120001U);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(table.AddressFor("a.example"), first);
  ASSERT_NE(table.NameOf(*second), nullptr);
  EXPECT_EQ(*table.NameOf(*second), "b.example");
}

TEST(NameTable, NeverGivenOutAddressesMeanNothing) {
  NameTable table;
  (void)table.AddressFor("a.example");
  for (const std::uint32_t address : {0xc6120000U, 0xc6120002U, 0xc613ffffU, 0xc6140001U, 0U}) {
    EXPECT_EQ(table.NameOf(address), nullptr) << address;
  }
}

TEST(NameTable, AFullTableGivesNothingMoreAndForgetsNothing) {
  NameTable table;
  for (std::size_t i = 0; i < kNamesMax; ++i) {
    ASSERT_TRUE(table.AddressFor(std::to_string(i)));
  }
  EXPECT_FALSE(table.AddressFor("one more"));
  EXPECT_TRUE(table.AddressFor("0"));
}

}  // namespace
}  // namespace soma::egress
