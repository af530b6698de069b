// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/task.h"
#include "aio/worker_pool.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "egress/socket_address.h"
#include "policy/address.h"
#include "sys/plain_file.h"

namespace soma::egress {

namespace {

constexpr std::size_t kAddressesMax = 16;
// Eight sandboxes whose names all hang (Limits::looking_up_max) take all of them.
constexpr std::size_t kLookupThreads = 16;

std::unexpected<Error> NoSuchName(std::string_view name, std::string_view why) {
  return Fail(Errc::kUnavailable, StrCat("cannot resolve ", name, ": ", why));
}

Result<std::vector<policy::IpAddress>> ResolveBlocking(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* raw = nullptr;
  const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &raw);
  if (code != 0) return NoSuchName(name, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
  std::vector<policy::IpAddress> addresses;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    const auto endpoint = EndpointFrom(*at->ai_addr);
    if (!endpoint || addresses.size() == kAddressesMax) continue;
    if (std::ranges::find(addresses, endpoint->address) == addresses.end()) {
      addresses.push_back(endpoint->address);
    }
  }
  if (addresses.empty()) return NoSuchName(name, "no address");
  return addresses;
}

}  // namespace

aio::Task<std::vector<policy::IpAddress>> SystemResolver::Resolve(std::string name) {
  if (!lookups_) lookups_.emplace(kLookupThreads);
  co_return co_await aio::WorkerPool::Run<std::vector<policy::IpAddress>>(
      *lookups_, [name] { return ResolveBlocking(name); });
}

Result<HostsTable> ParseHosts(std::string_view text) {
  HostsTable table;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::vector<std::string_view> words = Split(line, ' ');
    const auto address = policy::ParseIpAddress(words.front());
    if (!address || words.size() < 2) {
      return Fail(Errc::kInvalidArgument, StrCat("not a line of a hosts file: ", line));
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      table[std::string(words[i])].push_back(*address);
    }
  }
  return table;
}

aio::Task<std::vector<policy::IpAddress>> HostsResolver::Resolve(std::string name) {
  const auto found = table_.find(name);
  if (found == table_.end()) co_return NoSuchName(name, "not in the table");
  co_return found->second;
}

void ForgetSearchDomains() { (void)::setenv("LOCALDOMAIN", "", 1); }

Result<std::unique_ptr<Resolver>> MakeResolver() {
#if SOMA_TEST_SWITCHES
  if (const char* path = std::getenv("SOMA_TEST_HOSTS"); path != nullptr) {
    constexpr std::size_t kHostsBytesMax = std::size_t{1} << 20;
    SOMA_ASSIGN(const std::string text, sys::ReadWholeFile(path, kHostsBytesMax));
    SOMA_ASSIGN(HostsTable table, ParseHosts(text));
    return std::make_unique<HostsResolver>(std::move(table));
  }
#endif
  return std::make_unique<SystemResolver>();
}

}  // namespace soma::egress
