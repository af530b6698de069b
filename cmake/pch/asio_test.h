// SPDX-License-Identifier: Apache-2.0
// For the unit tests of the rooms on top of aio.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pch/asio.h"
