// SPDX-License-Identifier: Apache-2.0
// soma-server: the HTTP faces and the life of sandboxes. It reads foreign bytes, therefore owns
// nothing it could lose: sandboxes belong to the launcher and their monitors, and go on when it
// dies.
#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "apps/server_program.h"

namespace {

void Declare(CLI::App& app, soma::apps::ServerOptions& options) {
  app.add_option("--listen", options.listen,
                 "ADDRESS:PORT to serve, unless the launcher holds sockets for us");
  app.add_option("--level", options.level, "isolation level: container, emulated, microvm or auto");
  app.add_option("--host", options.api.hosts, "another Host that may be asked for; repeatable");
  app.add_option("--origin", options.api.origins, "an Origin that web pages may call from");
  app.add_option("--domain", options.api.domain,
                 "the domain below which <port>-<sandbox> hosts are; told to SDKs");
  app.add_option("--memory-mb", options.memory_mib, "memory of a sandbox, MiB");
  app.add_option("--disk-mb", options.disk_mib, "disk of a sandbox, MiB");
  app.add_option("--sandboxes-max", options.sandboxes_max, "refuse more at the same time");
  app.add_option("--parent", options.parent, "end with this process, which started the server")
      ->group("");
  app.add_option("--default-user", options.default_user, "as whom commands run inside");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kOwnFailure = 125;
  try {
    CLI::App app("soma-server: serves sandboxes over HTTP to E2B's SDKs");
    soma::apps::ServerOptions options;
    Declare(app, options);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      const int code = app.exit(error);
      return code == 0 ? 0 : kOwnFailure;
    }
    return soma::apps::RunServer(options);
  } catch (const std::exception& error) {
    std::cerr << "soma-server: " << error.what() << '\n';
    return kOwnFailure;
  }
}
