// SPDX-License-Identifier: Apache-2.0
// Boost.JSON itself, compiled once: Debian ships it as headers for static linking.
#include <boost/json/src.hpp>
