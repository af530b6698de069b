// SPDX-License-Identifier: Apache-2.0
// ControlFace: E2B's control plane (research/e2b.md section 1): create, list, look at and end
// sandboxes. What is not there yet answers 501 with its name.
#ifndef SOMA_API_CONTROL_H_
#define SOMA_API_CONTROL_H_

#include <string>
#include <string_view>
#include <vector>

#include "aio/http.h"
#include "aio/task.h"
#include "api/create_request.h"
#include "parse/http_target.h"
#include "sandbox/manager.h"

namespace soma::api {

class ControlFace {
 public:
  ControlFace(sandbox::SandboxManager& manager, std::string domain)
      : manager_(manager), domain_(std::move(domain)) {}

  aio::Task<void> Handle(aio::HttpExchange& exchange, parse::HttpTarget target, std::string tenant);

 private:
  using Segments = std::vector<std::string>;

  aio::Task<void> HandleOne(aio::HttpExchange& exchange, const parse::HttpTarget& target,
                            std::string_view tenant, const Segments& segments, Generation version);
  aio::Task<void> HandleVerb(aio::HttpExchange& exchange, std::string_view verb,
                             std::shared_ptr<sandbox::Sandbox> sandbox, Generation version);
  aio::Task<void> Create(aio::HttpExchange& exchange, std::string_view tenant, Generation version);
  aio::Task<void> List(aio::HttpExchange& exchange, const parse::HttpTarget& target,
                       std::string_view tenant, Generation version);
  aio::Task<void> Connect(aio::HttpExchange& exchange, std::shared_ptr<sandbox::Sandbox> sandbox);
  aio::Task<void> SetTimeout(aio::HttpExchange& exchange, std::shared_ptr<sandbox::Sandbox> sandbox,
                             std::string_view member);
  aio::Task<void> SetNetwork(aio::HttpExchange& exchange,
                             std::shared_ptr<sandbox::Sandbox> sandbox);
  aio::Task<void> Metrics(aio::HttpExchange& exchange, const parse::HttpTarget& target,
                          std::shared_ptr<sandbox::Sandbox> sandbox);

  sandbox::SandboxManager& manager_;
  std::string domain_;
};

}  // namespace soma::api

#endif  // SOMA_API_CONTROL_H_
