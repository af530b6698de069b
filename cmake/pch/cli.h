// SPDX-License-Identifier: Apache-2.0
// For the room cli: its command line parser as well.
#include <CLI/CLI.hpp>

#include "pch/asio.h"
