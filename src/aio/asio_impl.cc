// SPDX-License-Identifier: Apache-2.0
// Boost.Asio and Boost.Beast, compiled once (BOOST_ASIO_SEPARATE_COMPILATION and
// BOOST_BEAST_SEPARATE_COMPILATION, set in CMakeLists.txt): headers alone would cost every
// file that includes them several seconds.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
