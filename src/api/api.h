// SPDX-License-Identifier: Apache-2.0
// Api: the HTTP faces of soma-server on one port. It decides to which face a request belongs, who
// sends it, and whether that may be; the faces translate between HTTP and the rooms below.
//
//   routing headers or "<port>-<sandbox>.…" as host, port 49983   -> envd face (api/envd.h)
//   the same with any other port                                  -> that port (api/port_face.h)
//   a signed /files URL without any routing                       -> envd face of who signed it
//   everything else                                               -> control face (api/control.h)
//
// On the control and envd faces a request with a foreign Host or an unlisted Origin is refused,
// which is what a web page in the user's own browser would send; a request from this machine needs
// its key like every other. Traffic to ports passes both: it belongs to the program inside.
#ifndef SOMA_API_API_H_
#define SOMA_API_API_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aio/http.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "sandbox/manager.h"

namespace soma::api {

// Port of the envd face in every sandbox's numbering (E2B's).
inline constexpr std::uint16_t kEnvdPort = 49983;

// Says whose key it is.
class KeyChecker {
 public:
  virtual ~KeyChecker() = default;
  // The tenant's id; kUnauthenticated for every key that is not valid now.
  virtual Result<std::string> TenantOf(std::string_view key) = 0;
};

struct ApiOptions {
  // Hosts besides this machine's own names and addresses, each with everything below it.
  std::vector<std::string> hosts;
  // Origins ("https://app.example.org") that web pages may call from.
  std::vector<std::string> origins;
  // Told to SDKs as `domain`; "" tells none.
  std::string domain;
};

struct ApiParts {
  sandbox::SandboxManager& manager;
  KeyChecker& keys;
};

class Api final : public aio::HttpHandler {
 public:
  Api(const ApiParts& parts, ApiOptions options);
  aio::Job Handle(aio::HttpExchange& exchange) override;

 private:
  aio::Task<void> Dispatch(aio::HttpExchange& exchange);
  void RecordRefusal(const aio::HttpExchange& exchange, const Error& why);

  ApiParts parts_;
  ApiOptions options_;
};

}  // namespace soma::api

#endif  // SOMA_API_API_H_
