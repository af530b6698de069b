// SPDX-License-Identifier: Apache-2.0
// CaptureService: serves the sockets inside one sandbox's network namespace, from outside it.
//
// A connection that arrives was meant for the address in its getsockname(). It is handed to the
// Broker; refused ones are reset. DNS queries are answered over UDP and TCP. When this object or
// its process is gone, so are the sockets, and every connect inside fails.
#ifndef SOMA_EGRESS_CAPTURE_SERVICE_H_
#define SOMA_EGRESS_CAPTURE_SERVICE_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <set>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "egress/broker.h"
#include "sys/fd.h"

namespace soma::egress {

// As walls::CaptureSockets; the room walls is not visible here.
struct CaptureListeners {
  Fd tcp4;
  Fd tcp6;
  Fd dns_udp4;
  Fd dns_tcp4;
};

class CaptureService {
 public:
  struct Limits {
    std::size_t connections_max = 1024;
    std::chrono::nanoseconds idle_max = std::chrono::hours(2);
  };

  // The loop and the broker outlive it.
  CaptureService(aio::Loop& loop, Broker& broker, CaptureListeners listeners, Limits limits);
  CaptureService(const CaptureService&) = delete;
  CaptureService& operator=(const CaptureService&) = delete;
  // Stop must have ended.
  ~CaptureService();

  // Closes everything and waits for what is under way.
  aio::Job Stop();

 private:
  class Live;

  aio::Job ServeTcp(aio::Acceptor& acceptor);
  aio::Job ServeDnsTcp(aio::Acceptor& acceptor);
  aio::Job ServeDnsUdp();
  aio::Job Connection(Fd client);
  aio::Job DnsConnection(Fd client);

  aio::Loop& loop_;
  Broker& broker_;
  Limits limits_;
  Fd dns_udp4_;
  std::unique_ptr<aio::Acceptor> tcp4_;
  std::unique_ptr<aio::Acceptor> tcp6_;
  std::unique_ptr<aio::Acceptor> dns_tcp4_;
  std::set<aio::ByteStream*> live_;
  std::size_t connections_ = 0;
  bool stopping_ = false;
  aio::TaskGroup tasks_;
};

}  // namespace soma::egress

#endif  // SOMA_EGRESS_CAPTURE_SERVICE_H_
