// SPDX-License-Identifier: Apache-2.0
#include "policy/address.h"

#include <gtest/gtest.h>

namespace soma::policy {
namespace {

AddressClass ClassOf(const char* text) {
  const auto address = ParseIpAddress(text);
  EXPECT_TRUE(address) << text;
  return address ? ClassifyAddress(*address) : AddressClass::kPublic;
}

TEST(IpAddress, ReadsAndWritesCanonicalText) {
  for (const char* text : {"0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1", "2001:db8::1",
                           "fe80::1:2:3:4", "1:2:3:4:5:6:7:8", "64:ff9b::102:304"}) {
    const auto address = ParseIpAddress(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(FormatAddress(*address), text);
  }
  EXPECT_EQ(FormatAddress(*ParseIpAddress("::ffff:10.0.0.1")), "10.0.0.1");
}

TEST(IpAddress, RefusesLooseForms) {
  for (const char* text : {"", "1", "1.2.3", "01.2.3.4", "1.2.3.256", "0x7f.0.0.1", "127.1",
                           "1.2.3.4.5", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
                           "::g", "fe80::1%eth0", "12345::", "::1.2.3", "1.2.3.4::", " ::1"}) {
    EXPECT_FALSE(ParseIpAddress(text)) << text;
  }
}

TEST(Cidr, ContainsAcrossSpellings) {
  const auto ten = ParseCidr("10.0.0.0/8");
  ASSERT_TRUE(ten);
  EXPECT_TRUE(ten->Contains(*ParseIpAddress("10.255.0.1")));
  EXPECT_TRUE(ten->Contains(*ParseIpAddress("::ffff:10.1.2.3")));
  EXPECT_FALSE(ten->Contains(*ParseIpAddress("11.0.0.1")));
  EXPECT_EQ(FormatCidr(*ten), "10.0.0.0/8");
  EXPECT_EQ(FormatCidr(*ParseCidr("fd00::/8")), "fd00::/8");
  EXPECT_FALSE(ParseCidr("0.0.0.0/0")->Contains(*ParseIpAddress("2606:4700::1")));
  EXPECT_TRUE(ParseCidr("::/0")->Contains(*ParseIpAddress("1.1.1.1")));
}

TEST(Cidr, RefusesHostBitsAndBadPrefixes) {
  for (const char* text :
       {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "::/129", "fd00::1/8", "/8", "10.0.0.0/-1"}) {
    EXPECT_FALSE(ParseCidr(text)) << text;
  }
}

TEST(AddressClass, KnowsTheSpecialRanges) {
  EXPECT_EQ(ClassOf("8.8.8.8"), AddressClass::kPublic);
  EXPECT_EQ(ClassOf("2606:4700::1111"), AddressClass::kPublic);
  EXPECT_EQ(ClassOf("127.9.9.9"), AddressClass::kLoopback);
  EXPECT_EQ(ClassOf("0.0.0.0"), AddressClass::kLoopback);
  EXPECT_EQ(ClassOf("::1"), AddressClass::kLoopback);
  EXPECT_EQ(ClassOf("::"), AddressClass::kLoopback);
  EXPECT_EQ(ClassOf("172.31.255.255"), AddressClass::kPrivate);
  EXPECT_EQ(ClassOf("100.64.0.1"), AddressClass::kPrivate);
  EXPECT_EQ(ClassOf("fd12::1"), AddressClass::kPrivate);
  EXPECT_EQ(ClassOf("169.254.1.1"), AddressClass::kLinkLocal);
  EXPECT_EQ(ClassOf("fe80::1"), AddressClass::kLinkLocal);
  EXPECT_EQ(ClassOf("169.254.169.254"), AddressClass::kMetadata);
  EXPECT_EQ(ClassOf("fd00:ec2::254"), AddressClass::kMetadata);
  EXPECT_EQ(ClassOf("239.1.1.1"), AddressClass::kMulticast);
  EXPECT_EQ(ClassOf("ff02::1"), AddressClass::kMulticast);
  EXPECT_EQ(ClassOf("192.0.2.1"), AddressClass::kReserved);
  EXPECT_EQ(ClassOf("4000::1"), AddressClass::kReserved);
}

TEST(AddressClass, LooksThroughEmbeddedForms) {
  EXPECT_EQ(ClassOf("::ffff:127.0.0.1"), AddressClass::kLoopback);
  EXPECT_EQ(ClassOf("::7f00:1"), AddressClass::kLoopback);         // IPv4-compatible
  EXPECT_EQ(ClassOf("64:ff9b::7f00:1"), AddressClass::kLoopback);  // NAT64
  EXPECT_EQ(ClassOf("64:ff9b:1::a9fe:a9fe"), AddressClass::kMetadata);
  EXPECT_EQ(ClassOf("2002:7f00:1::"), AddressClass::kLoopback);             // 6to4
  EXPECT_EQ(ClassOf("2001:0:0:0:0:0:80ff:fffe"), AddressClass::kLoopback);  // Teredo
  EXPECT_EQ(ClassOf("64:ff9b::808:808"), AddressClass::kPublic);
}

}  // namespace
}  // namespace soma::policy
