// SPDX-License-Identifier: Apache-2.0
// For the unit tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pch/std.h"
