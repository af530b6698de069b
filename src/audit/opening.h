// SPDX-License-Identifier: Apache-2.0
// The record with which a writer opens a segment, as writer and verifier know it.
#ifndef SOMA_AUDIT_OPENING_H_
#define SOMA_AUDIT_OPENING_H_

#include <string_view>

namespace soma::audit {

// kind "journal" with this subject; the field holds the head that it continues, in hexadecimal.
inline constexpr std::string_view kOpeningSubject = "segment opened";
inline constexpr std::string_view kOpeningHeadField = "head";

}  // namespace soma::audit

#endif  // SOMA_AUDIT_OPENING_H_
