// SPDX-License-Identifier: Apache-2.0
// The body of a create call as a CreateRequest. Pure, untrusted input.
#ifndef SOMA_API_CREATE_REQUEST_H_
#define SOMA_API_CREATE_REQUEST_H_

#include <cstdint>

#include "base/result.h"
#include "parse/json.h"
#include "sandbox/manager.h"

namespace soma::api {

// The unversioned calls and those below /v2 differ in defaults (e2b.md section 8, trap 1).
enum class Generation : std::uint8_t { kV1, kV2 };

// kInvalidArgument names the member; kUnimplemented what this server cannot do yet but would have
// to, because leaving it out would be less isolation or less data than asked for.
Result<sandbox::CreateRequest> ReadCreateRequest(const parse::Json& body, Generation version);

// The body of a network update: the members of "network" and "allow_internet_access" side by side;
// what is left out is cleared.
Result<sandbox::NetworkWish> ReadNetworkUpdate(const parse::Json& body);

}  // namespace soma::api

#endif  // SOMA_API_CREATE_REQUEST_H_
