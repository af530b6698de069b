// SPDX-License-Identifier: Apache-2.0
#include "egress/capture_service.h"

#include <fcntl.h>

#include <chrono>
#include <memory>
#include <utility>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "egress/broker.h"
#include "egress/dns_socket.h"
#include "egress/dns_stream.h"
#include "egress/socket_address.h"
#include "policy/address.h"
#include "sys/fd.h"

namespace soma::egress {

namespace {

// How soon the DNS loop notices that it should end.
constexpr std::chrono::seconds kDnsPoll(1);
constexpr int kDatagramsAtOnce = 64;

}  // namespace

// A stream that Stop closes.
class CaptureService::Live {
 public:
  Live(CaptureService& service, aio::ByteStream& stream) : service_(service), stream_(stream) {
    service_.live_.insert(&stream_);
  }
  ~Live() { service_.live_.erase(&stream_); }
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

 private:
  CaptureService& service_;
  aio::ByteStream& stream_;
};

namespace {

// The sockets may come blocking; the loop must never wait in accept.
Fd NonBlocking(Fd socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  (void)::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  return socket;
}

// The capture leaves loopback alone, so a connection that was meant for it
// reached the listener itself, by its port. It stands for no wish to get out.
bool WasMeantForTheListener(const Endpoint& meant) {
  return policy::ClassifyAddress(meant.address) == policy::AddressClass::kLoopback;
}

}  // namespace

CaptureService::CaptureService(aio::Loop& loop, Broker& broker, CaptureListeners listeners,
                               Limits limits)
    : loop_(loop),
      broker_(broker),
      limits_(limits),
      dns_udp4_(std::move(listeners.dns_udp4)),
      tcp4_(std::make_unique<aio::Acceptor>(loop, NonBlocking(std::move(listeners.tcp4)))),
      tcp6_(std::make_unique<aio::Acceptor>(loop, NonBlocking(std::move(listeners.tcp6)))),
      dns_tcp4_(std::make_unique<aio::Acceptor>(loop, NonBlocking(std::move(listeners.dns_tcp4)))),
      tasks_(loop) {
  tasks_.Spawn(ServeTcp(*tcp4_));
  tasks_.Spawn(ServeTcp(*tcp6_));
  tasks_.Spawn(ServeDnsTcp(*dns_tcp4_));
  tasks_.Spawn(ServeDnsUdp());
}

CaptureService::~CaptureService() { SOMA_CHECK(tasks_.size() == 0); }

aio::Job CaptureService::Stop() {
  stopping_ = true;
  tcp4_->Close();
  tcp6_->Close();
  dns_tcp4_->Close();
  for (aio::ByteStream* stream : live_) stream->Close();
  // Ends by itself: dials have a deadline, streams are closed, the DNS loop
  // polls.
  while (!co_await tasks_.Join(std::chrono::minutes(1))) {
  }
}

aio::Job CaptureService::ServeTcp(aio::Acceptor& acceptor) {
  while (!stopping_) {
    Result<Fd> client = co_await acceptor.Accept();
    if (!client) co_return;
    if (connections_ >= limits_.connections_max) continue;  // closed at once
    tasks_.Spawn(Connection(*std::move(client)));
  }
}

aio::Job CaptureService::Connection(Fd client) {
  ++connections_;
  const Result<Endpoint> meant = LocalEndpoint(client);
  const std::unique_ptr<aio::ByteStream> inside = aio::MakeSocketStream(loop_, std::move(client));
  const Live live_inside(*this, *inside);
  Result<Fd> dialled = Fail(Errc::kInvalidArgument, "not a captured connection");
  if (meant && !WasMeantForTheListener(*meant)) dialled = co_await broker_.OpenAddress(*meant);
  if (dialled && !stopping_) {
    const std::unique_ptr<aio::ByteStream> outside =
        aio::MakeSocketStream(loop_, *std::move(dialled));
    const Live live_outside(*this, *outside);
    (void)co_await aio::Splice(loop_, *inside, *outside, limits_.idle_max);
  } else {
    // An orderly end would look like an empty answer.
    inside->Reset();
  }
  --connections_;
}

aio::Job CaptureService::ServeDnsTcp(aio::Acceptor& acceptor) {
  while (!stopping_) {
    Result<Fd> client = co_await acceptor.Accept();
    if (!client) co_return;
    if (connections_ >= limits_.connections_max) continue;
    tasks_.Spawn(DnsConnection(*std::move(client)));
  }
}

aio::Job CaptureService::DnsConnection(Fd client) {
  ++connections_;
  const std::unique_ptr<aio::ByteStream> stream = aio::MakeSocketStream(loop_, std::move(client));
  const Live live(*this, *stream);
  (void)co_await ServeDnsStream(broker_, *stream);
  --connections_;
}

aio::Job CaptureService::ServeDnsUdp() {
  while (!stopping_) {
    const Result<bool> ready = co_await aio::WaitReadable(loop_, dns_udp4_.get(), kDnsPoll);
    if (!ready) co_return;
    if (!*ready) continue;
    for (int i = 0; i < kDatagramsAtOnce; ++i) {
      const auto query = ReceiveQuery(dns_udp4_);
      if (!query) break;
      const Bytes answer = broker_.Answer(query->message);
      if (!answer.empty()) SendAnswer(dns_udp4_, *query, answer);
    }
  }
}

}  // namespace soma::egress
