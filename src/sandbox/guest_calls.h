// SPDX-License-Identifier: Apache-2.0
// What a face may ask of the guest inside a sandbox: the wire's messages, and the channels that
// carry them. Faces include this and nothing of the rooms below, so that the house has one place
// where it shows what reaches a guest.
#ifndef SOMA_SANDBOX_GUEST_CALLS_H_
#define SOMA_SANDBOX_GUEST_CALLS_H_

#include "runtime/guest_link.h"    // IWYU pragma: export
#include "runtime/guest_stream.h"  // IWYU pragma: export
#include "runtime/runtime.h"       // IWYU pragma: export
#include "wire/message.h"          // IWYU pragma: export
#include "wire/record.h"           // IWYU pragma: export
#include "wire/reply.h"            // IWYU pragma: export

#endif  // SOMA_SANDBOX_GUEST_CALLS_H_
