// SPDX-License-Identifier: Apache-2.0
// Resolver: the broker's own look-up of names, outside the sandbox.
#ifndef SOMA_EGRESS_RESOLVER_H_
#define SOMA_EGRESS_RESOLVER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/task.h"
#include "aio/worker_pool.h"
#include "base/result.h"
#include "policy/address.h"

namespace soma::egress {

class Resolver {
 public:
  virtual ~Resolver() = default;
  // At least one address, in the order to try them. `name` is a normal host name.
  virtual aio::Task<std::vector<policy::IpAddress>> Resolve(std::string name) = 0;
};

// The machine's own way (getaddrinfo(3)), on threads of its own: a name server that does not answer
// keeps one for half a minute. They are started with the first name.
class SystemResolver final : public Resolver {
 public:
  aio::Task<std::vector<policy::IpAddress>> Resolve(std::string name) override;

 private:
  std::optional<aio::WorkerPool> lookups_;
};

// Names from a table, in the format of hosts(5). For tests.
using HostsTable = std::map<std::string, std::vector<policy::IpAddress>>;
Result<HostsTable> ParseHosts(std::string_view text);

class HostsResolver final : public Resolver {
 public:
  explicit HostsResolver(HostsTable table) : table_(std::move(table)) {}
  aio::Task<std::vector<policy::IpAddress>> Resolve(std::string name) override;

 private:
  HostsTable table_;
};

// A resolver's search domains would turn an allowed name into another one: none, for this process.
// Before its first thread.
void ForgetSearchDomains();

// The machine's own. A test build takes the hosts file that SOMA_TEST_HOSTS names instead, so that
// tests need no name server.
Result<std::unique_ptr<Resolver>> MakeResolver();

}  // namespace soma::egress

#endif  // SOMA_EGRESS_RESOLVER_H_
