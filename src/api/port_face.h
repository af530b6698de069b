// SPDX-License-Identifier: Apache-2.0
// PortFace: a TCP port inside a sandbox as an HTTP origin, as E2B's proxy does it (research/e2b.md
// section 3.6). Requests and answers pass through one by one, so that the next request on a
// client's connection may go to another sandbox; what asks for an upgrade (WebSocket) becomes a
// tunnel.
//
// The program inside is untrusted: its answer is parsed and written anew, and what it says about
// its connection stays between it and us.
#ifndef SOMA_API_PORT_FACE_H_
#define SOMA_API_PORT_FACE_H_

#include "aio/http.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "parse/http_target.h"
#include "sandbox/manager.h"

namespace soma::api {

class PortFace {
 public:
  explicit PortFace(sandbox::SandboxManager& manager) : manager_(manager) {}
  aio::Task<void> Handle(aio::HttpExchange& exchange, parse::SandboxPort route);

 private:
  sandbox::SandboxManager& manager_;
};

}  // namespace soma::api

#endif  // SOMA_API_PORT_FACE_H_
