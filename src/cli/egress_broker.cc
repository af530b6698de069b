// SPDX-License-Identifier: Apache-2.0
// soma egress-broker: the way out of one `soma run`. Started by `soma` beside the sandbox while it
// builds the walls, never by hand.
//
// It gets the policy as policy::Handover on a descriptor, and on the control socket one packet with
// the four sockets of the sandbox's network namespace (walls::CaptureSockets in their order). It
// answers one byte 'R' once it serves, and ends when the control socket's other end is closed.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "aio/loop.h"
#include "aio/task.h"
#include "aio/worker_pool.h"
#include "audit/journal.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "egress/broker.h"
#include "egress/capture_service.h"
#include "egress/flushing_recorder.h"
#include "egress/resolver.h"
#include "policy/handover.h"
#include "policy/load.h"
#include "policy/model.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/plain_file.h"
#include "sys/seccomp.h"
#include "sys/service_user.h"
#include "sys/soma_paths.h"
#include "walls/seccomp_profile.h"

namespace soma::cli {

namespace {

struct BrokerOptions {
  int control = -1;
  int policy = -1;
  egress::Identity identity;
};

constexpr std::size_t kSockets = 4;

Result<policy::Policy> ReadPolicy(const Fd& descriptor) {
  SOMA_ASSIGN(const std::string json, sys::ReadAt(descriptor, 0, policy::kHandoverBytesMax + 1));
  SOMA_ASSIGN(const policy::Handover handover, policy::DecodeHandover(json));
  return policy::Load(handover.context, handover.sources, handover.command_line);
}

Result<egress::CaptureListeners> ReceiveListeners(const Fd& control) {
  std::array<std::uint8_t, 16> buffer{};
  SOMA_ASSIGN(sys::ReceivedPacket packet, sys::ReceivePacket(control, buffer, kSockets));
  if (packet.size == 0) return Fail(Errc::kCancelled, "the run ended before it began");
  if (packet.descriptors.size() != kSockets) {
    return Fail(Errc::kInvalidArgument, "the broker wants four sockets");
  }
  return egress::CaptureListeners{.tcp4 = std::move(packet.descriptors[0]),
                                  .tcp6 = std::move(packet.descriptors[1]),
                                  .dns_udp4 = std::move(packet.descriptors[2]),
                                  .dns_tcp4 = std::move(packet.descriptors[3])};
}

// It reads hostile bytes: from here on it can't execute, trace, mount, load or become anything.
// Before the first thread, since a thread keeps the filter that it was made with.
Status LockDown() {
  SOMA_TRY_WHILE(sys::BecomeServiceUser(), "becoming the broker's user");
  const sys::SeccompProgram program =
      walls::ProgramFor(walls::SeccompProfile::kServer, walls::SeccompNotify::kNone);
  if (const int failed = sys::LoadSeccomp(program); failed != 0) {
    return std::unexpected(Error::FromErrno(failed, "loading the broker's seccomp filter"));
  }
  return {};
}

// Serves until the control socket's other end is closed.
aio::Job ServeUntilClosed(aio::Loop& loop, const Fd& control, egress::CaptureService& service) {
  while (true) {
    const Result<bool> readable =
        co_await aio::WaitReadable(loop, control.get(), std::chrono::hours(1));
    if (!readable) break;
    if (!*readable) continue;
    std::array<std::uint8_t, 16> buffer{};
    const auto packet = sys::ReceivePacket(control, buffer, 0);
    if (!packet || packet->size == 0) break;
  }
  co_await service.Stop();
  loop.Stop();
}

Status Serve(Context& context, const BrokerOptions& options) {
  const Fd control(options.control);
  const Fd policy_descriptor(options.policy);
  SOMA_ASSIGN(policy::Policy policy, ReadPolicy(policy_descriptor));
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  const std::string journal_path = state + "/journal";
  SOMA_TRY(sys::MakeServiceDirectory(journal_path));
  // Held open: root may keep its state where the broker's user can't pass.
  SOMA_ASSIGN(const Fd journal_directory, sys::OpenFile(journal_path, O_PATH | O_DIRECTORY));
  SOMA_TRY(LockDown());
  SOMA_ASSIGN(const auto journal,
              audit::Journal::Open({.directory = StrCat("/proc/self/fd/", journal_directory.get()),
                                    .run = options.identity.run,
                                    .clock = &context.clock}));
  aio::Loop loop;
  // Destroyed in the reverse order: the workers end while the recorder that they use is there.
  std::optional<egress::FlushingRecorder> recorder;
  aio::WorkerPool workers;
  recorder.emplace(*journal, workers);
  SOMA_ASSIGN(const auto resolver, egress::MakeResolver());
  egress::Broker broker(
      {.loop = loop, .workers = workers, .recorder = *recorder, .resolver = *resolver},
      std::move(policy), options.identity);
  SOMA_ASSIGN(egress::CaptureListeners listeners, ReceiveListeners(control));
  egress::CaptureService service(loop, broker, std::move(listeners), {});
  const std::array<std::uint8_t, 1> ready = {'R'};
  const Status told = sys::SendPacket(control, ready);
  loop.SpawnRoot(ServeUntilClosed(loop, control, service));
  loop.Run();
  SOMA_TRY(told);
  return journal->Close();
}

}  // namespace

void AddEgressBroker(CLI::App& tools, Context& context) {
  const auto options = std::make_shared<BrokerOptions>();
  CLI::App* broker = AddCommand(tools, "egress-broker", "Internal: the way out of one run",
                                "(started by soma run)");
  broker->group("");  // not shown in the help
  broker->add_option("--control", options->control, "Descriptor of the control socket")->required();
  broker->add_option("--policy-json", options->policy, "Descriptor of the policy")->required();
  broker->add_option("--run", options->identity.run, "Id for the record")->required();
  broker->add_option("--sandbox", options->identity.sandbox, "Id for the record");
  broker->add_option("--tenant", options->identity.tenant, "Id for the record");
  broker->callback([&context, options] {
    egress::ForgetSearchDomains();
    const Status status = Serve(context, *options);
    if (!status && status.error().code() != Errc::kCancelled) FailWith(context, status.error());
  });
}

}  // namespace soma::cli
