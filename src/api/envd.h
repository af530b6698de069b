// SPDX-License-Identifier: Apache-2.0
// EnvdFace: what E2B's SDKs take for the agent inside a sandbox (research/e2b.md section 3):
// processes and files over Connect JSON, plain uploads and downloads. It proves who asks (the
// sandbox's own token, or a signed URL), translates, and lets the guest do the work.
#ifndef SOMA_API_ENVD_H_
#define SOMA_API_ENVD_H_

#include <memory>
#include <string>
#include <string_view>

#include "aio/http.h"
#include "aio/task.h"
#include "parse/http_target.h"
#include "sandbox/manager.h"
#include "sandbox/sandbox.h"

namespace soma::api {

// One request to one sandbox, after it was proved.
struct EnvdCall {
  aio::HttpExchange& exchange;
  parse::HttpTarget target;
  std::shared_ptr<sandbox::Sandbox> sandbox;
  // As whom; "" = the sandbox's default user.
  std::string user;
};

class EnvdFace {
 public:
  explicit EnvdFace(sandbox::SandboxManager& manager) : manager_(manager) {}

  // `sandbox_id` is "" for a signed URL that names no sandbox.
  aio::Task<void> Handle(aio::HttpExchange& exchange, parse::HttpTarget target,
                         std::string sandbox_id);

 private:
  Result<std::shared_ptr<sandbox::Sandbox>> Prove(const aio::HttpExchange& exchange,
                                                  const parse::HttpTarget& target,
                                                  std::shared_ptr<sandbox::Sandbox> sandbox);
  sandbox::SandboxManager& manager_;
};

// process.Process/<method> (envd_process.cc).
aio::Task<void> HandleProcess(EnvdCall& call, std::string_view method);
// filesystem.Filesystem/<method> (envd_filesystem.cc).
aio::Task<void> HandleFilesystem(EnvdCall& call, std::string_view method);
// GET and POST /files (envd_files.cc).
aio::Task<void> DownloadFile(EnvdCall& call);
aio::Task<void> UploadFiles(EnvdCall& call);

}  // namespace soma::api

#endif  // SOMA_API_ENVD_H_
