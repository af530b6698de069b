// SPDX-License-Identifier: Apache-2.0
// Worker: the launcher's half that listens. One thread, one poll loop. It answers the server's
// requests (control/messages.h), starts monitors, and removes what ended sandboxes leave.
//
// It may die at any moment: monitors and sandboxes live on by themselves, and the next worker
// adopts what lives and sweeps what does not (launcher/sweep.cc). Requests are untrusted in
// everything but their sender's uid.
#ifndef SOMA_LAUNCHER_WORKER_H_
#define SOMA_LAUNCHER_WORKER_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/messages.h"
#include "launcher/cgroup_tree.h"
#include "launcher/paths.h"
#include "launcher/roots.h"
#include "launcher/slots.h"
#include "launcher/uppers.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace soma::launcher {

struct WorkerOptions {
  Paths paths;
  std::string programs;  // the directory of soma-monitor and soma-guest
  control::Regime regime = control::Regime::kSystem;
  std::uint32_t server_uid = 0;
  std::size_t sandboxes_max = 256;
  std::size_t ready_wanted = 2;
  // Without a client and a living sandbox for so long: stop as `stop` asks. Zero: never.
  std::chrono::seconds idle_exit{0};
  // Clients hold it locked while they look for a launcher. It is locked before leaving, and stays
  // so until the launcher's parent has gone too, which shares the open file: whoever looks then
  // finds no launcher, instead of one that is about to leave.
  Fd gate;
  Fd listener;           // the launcher's own socket, bound and listening
  std::vector<Fd> http;  // kept for the server, never read here
  Fd stop;               // readable: end every sandbox, clean up, return
};

class Worker {
 public:
  // Prepares cgroups and mounts, adopts and sweeps.
  static Result<std::unique_ptr<Worker>> Create(WorkerOptions options, Clock& clock);
  ~Worker();

  // Until options.stop; kOk when everything is cleaned up.
  Status Run();

 private:
  using ClientId = std::uint64_t;
  struct Client;
  struct Pending;
  struct Sandbox;
  struct Draining;
  using SandboxMap = std::map<control::SandboxId, std::unique_ptr<Sandbox>>;

  Worker(WorkerOptions options, Clock& clock, CgroupTree cgroups, std::optional<Roots> roots);

  // worker.cc: the loop.
  void PollOnce(int timeout_ms);
  int TimeoutMs();
  void AcceptClient();
  void ReceiveFrom(ClientId id);
  void Send(ClientId id, const control::Reply& reply, const std::vector<int>& descriptors = {});
  void IdleStep();
  void HaveIdleWork();
  std::chrono::milliseconds UntilIdleWork() const;
  bool IsStarting() const;
  bool MayLeave();
  // Nobody is here: how long until that is reason enough to leave; nothing while somebody is.
  std::optional<std::chrono::milliseconds> UntilIdleExit();
  void Stop();

  // requests.cc: what the server asks.
  void Handle(ClientId client, const control::Request& request);
  control::Reply Answer(ClientId client, const control::Request& request, bool& later);
  control::Reply Hello(const control::Request& request) const;
  control::Reply List(const control::Request& request) const;
  control::Reply Allocate(const control::Request& request);
  control::Reply Freeze(const control::Request& request, Sandbox& sandbox);
  control::Reply Reap(const control::Request& request);
  void AnswerSockets(ClientId client, const control::Request& request);
  // To the sandbox's monitor; its answer goes to the client.
  Status Forward(ClientId client, const control::Request& request, Sandbox& sandbox);
  bool HearTheLastOf(const control::SandboxId& id);

  // start.cc: how a sandbox begins.
  Status Start(ClientId client, const control::Request& request);
  Result<Fd> TakeUpper(const control::Limits& limits);
  Status SendOrder(ReadySlot& slot, const control::Request& request, Sandbox& sandbox);
  Result<struct Blueprint> ContainerBlueprint(const ReadySlot& slot,
                                              const control::Request& request, Fd guest_wire);

  bool IsRootless() const { return options_.regime == control::Regime::kRootless; }

  // rootless_start.cc: the same for an ordinary user.
  Result<struct Blueprint> RootlessBlueprint(const control::Request& request, Fd guest_wire);
  void SweepTrees();

  // machine_start.cc: the same for a virtual machine.
  bool CanEmulate() const;
  Result<struct Blueprint> MachineBlueprint(const ReadySlot& slot, const control::Request& request,
                                            Fd guest_wire);

  // monitors.cc: what monitors say, and how a sandbox ends.
  void ReceiveFromMonitor(Sandbox& sandbox);
  void OnMonitorReply(Sandbox& sandbox, control::Reply reply, std::vector<Fd> descriptors);
  void AnswerStart(Sandbox& sandbox, const Pending& pending, control::Reply reply,
                   const std::vector<Fd>& descriptors);
  void OnOver(Sandbox& sandbox, const control::SandboxStatus& status);
  void OnMonitorGone(Sandbox& sandbox);
  void DrainOnce();
  bool IsDrained(Draining& draining);
  std::chrono::milliseconds UntilDrain() const;

  // sweep.cc: what an earlier worker left.
  Status Sweep();
  void Adopt(const struct Record& record);

  WorkerOptions options_;
  Clock& clock_;
  CgroupTree cgroups_;
  std::optional<Roots> roots_;  // none without root
  Uppers uppers_;
  Slots slots_;
  Fd guest_program_;
  Fd null_;
  std::uint64_t tsc_khz_ = 0;  // measured when the first machine starts
  std::map<ClientId, std::unique_ptr<Client>> clients_;
  ClientId next_client_ = 1;
  SandboxMap sandboxes_;
  std::list<Draining> draining_;
  // Monitors that still sit in their sandbox's cgroup.
  std::vector<control::SandboxId> to_move_home_;
  bool stopping_ = false;
  std::optional<MonotonicTime> alone_since_;
  // No descriptors were left at the last accept: don't spin on a listener that stays readable.
  bool accept_paused_ = false;
  // Nothing is left to prepare, or preparing failed: not again before something changes.
  bool idle_done_ = false;
  MonotonicTime idle_work_since_;
  MonotonicTime last_start_or_end_;
};

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_WORKER_H_
