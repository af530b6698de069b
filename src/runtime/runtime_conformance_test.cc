// SPDX-License-Identifier: Apache-2.0
// What every level promises (runtime.h), the same tests for all of them. The fake level always
// runs; the launched ones need SOMA_CONFORMANCE_STATE, a launcher's state directory with the
// template `base` and the kernel, and root.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "runtime/fake/fake_runtime.h"
#include "runtime/guest_link.h"
#include "runtime/launched/control_connection.h"
#include "runtime/launched/launched_runtime.h"
#include "runtime/runtime.h"
#include "sys/child_process.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "wire/message.h"

namespace soma::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// An emulated machine boots in seconds, beside other work in many.
constexpr seconds kPatience(180);

std::string Variable(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr ? value : "";
}

// A launcher of this test's own, with the template and the kernel of SOMA_CONFORMANCE_STATE.
class OwnLauncher {
 public:
  OwnLauncher(const std::string& programs, const fs::path& state) {
    std::string pattern = "/var/tmp/soma-conformance-XXXXXX";
    home_ = ::mkdtemp(pattern.data());
    fs::create_directories(home_ / "state/launcher/kernel");
    fs::permissions(home_ / "state/launcher", fs::perms::owner_all);
    fs::create_directory_symlink(state / "templates", home_ / "state/launcher/templates");
    // Not a link: a machine's jail follows none on the way to its kernel.
    for (const char* file : {"vmlinux", "initrd"}) {
      std::error_code absent;
      fs::copy_file(state / "kernel" / file, home_ / "state/launcher/kernel" / file, absent);
    }
    auto started =
        sys::StartProgram({.path = programs + "/soma-launcher",
                           .arguments = {"soma-launcher", "--ready", "0"},
                           .environment = {StrCat("SOMA_STATE_DIR=", home_.string(), "/state"),
                                           StrCat("SOMA_RUNTIME_DIR=", home_.string(), "/run"),
                                           "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
                           .descriptors = {},
                           .own_session = false});
    if (started) process_ = *std::move(started);
  }
  ~OwnLauncher() {
    if (process_.pid() > 0) {
      process_.Signal(SIGTERM);
      (void)process_.Wait();
    }
    std::error_code ignored;
    fs::remove_all(home_, ignored);
  }
  OwnLauncher(const OwnLauncher&) = delete;
  OwnLauncher& operator=(const OwnLauncher&) = delete;

  std::string socket() const { return (home_ / "run/launcher.sock").string(); }
  bool Answers() const {
    for (int i = 0; i < 500; ++i) {
      if (ConnectControl(socket())) return true;
      ::usleep(20'000);
    }
    return false;
  }

 private:
  fs::path home_;
  sys::Process process_;
};

class RuntimeConformance : public ::testing::TestWithParam<std::string> {
 public:
  // The tests, each in one coroutine.
  aio::Task<void> ASandboxLivesFromStartToStop();
  aio::Task<void> CapturesAreAllThereOrNoneAndOnce();
  aio::Task<void> WhatIsNotThereIsNotFound();
  aio::Task<void> ALeaseEndsItAndCanBeRenewed();
  aio::Task<void> CapabilitiesAreTrue();
  aio::Task<void> ASuccessorTakesOverWithTheTokenOnly();

 protected:
  void SetUp() override {
    const std::string programs = Variable("SOMA_BIN_DIR");
    if (programs.empty()) GTEST_SKIP() << "SOMA_BIN_DIR does not say where the programs are";
    if (GetParam() == "fake") {
      runtime_ = std::make_unique<FakeRuntime>(loop_, programs + "/soma-guest");
      return;
    }
    const fs::path state = Variable("SOMA_CONFORMANCE_STATE");
    if (!fs::exists(state / "templates/base/root.erofs")) {
      GTEST_SKIP() << "SOMA_CONFORMANCE_STATE names no state with the template base";
    }
    if (::geteuid() != 0) GTEST_SKIP() << "the launcher needs root for this level";
    const bool emulated = GetParam() == "emulated";
    if (emulated && ::access("/usr/bin/qemu-system-x86_64", X_OK) != 0) {
      GTEST_SKIP() << "no qemu-system-x86_64";
    }
    launcher_ = std::make_unique<OwnLauncher>(programs, state);
    ASSERT_TRUE(launcher_->Answers());
    runtime_ = std::make_unique<LaunchedRuntime>(
        std::make_shared<Launcher>(loop_, launcher_->socket()),
        emulated ? control::Level::kEmulated : control::Level::kContainer);
  }

  void TearDown() override {
    link_.reset();
    // The coroutines of a closed link and of a dropped handle have a turn to end in.
    loop_.Restart();
    loop_.SpawnRoot(StopSoon());
    loop_.Run();
    runtime_.reset();
  }

  bool HasSuccessors() const { return GetParam() != "fake"; }

  using Body = aio::Task<void> (RuntimeConformance::*)();

  void Check(Body body) {
    loop_.SpawnRoot(Drive(body));
    loop_.Run();
  }

  static StartRequest Request(std::string id) {
    StartRequest request;
    request.sandbox_id = std::move(id);
    request.template_id = "base";
    request.token.fill(7);
    return request;
  }

  // Speaks to the agent inside, which is the proof that it is there.
  aio::Task<void> Greet(SandboxHandle& handle) {
    SOMA_CO_ASSIGN(Fd wire, handle.TakeWire());
    GuestLinkOptions options;
    options.secret.fill(9);
    options.next_secret = options.secret;
    options.epoch = ++epoch_;
    link_ = std::make_unique<GuestLink>(loop_, std::move(wire), std::move(options));
    const auto identity = co_await link_->Establish(kPatience);
    if (!identity) co_return std::unexpected(identity.error());
    co_return Status();
  }

  aio::Task<std::string> Output(std::string script) {
    wire::Start start;
    start.profile = "strict";
    start.arguments = {"/bin/sh", "-c", std::move(script)};
    SOMA_CO_ASSIGN(const auto channel, link_->Request(start));
    std::string out;
    for (;;) {
      SOMA_CO_ASSIGN(const wire::Message message, co_await channel->Next(kPatience));
      if (const auto* data = std::get_if<wire::Data>(&message)) {
        out.append(data->bytes.begin(), data->bytes.end());
      } else if (std::holds_alternative<wire::Exit>(message)) {
        co_return out;
      }
    }
  }

  aio::Task<bool> IsListed(std::string id) {
    SOMA_CO_ASSIGN(const auto ids, co_await runtime_->List());
    co_return std::ranges::find(ids, id) != ids.end();
  }

  aio::Loop loop_;
  std::unique_ptr<OwnLauncher> launcher_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<GuestLink> link_;

 private:
  aio::Job Drive(Body body) {
    const Status done = co_await (this->*body)();
    EXPECT_TRUE(done) << done.error().message();
    loop_.Stop();
  }
  aio::Job StopSoon() {
    co_await aio::Sleep(loop_, milliseconds(50));
    loop_.Stop();
  }

  std::uint64_t epoch_ = 0;
};

aio::Task<void> RuntimeConformance::ASandboxLivesFromStartToStop() {
  SOMA_CO_ASSIGN(const auto handle, co_await runtime_->Start(Request("one")));
  SOMA_CO_TRY(co_await Greet(*handle));
  SOMA_CO_ASSIGN(const std::string out, co_await Output("echo here"));
  EXPECT_EQ(out, "here\n");
  EXPECT_EQ(handle->TakeWire().error().code(), Errc::kFailedPrecondition);
  SOMA_CO_ASSIGN(const bool listed, co_await IsListed("one"));
  EXPECT_TRUE(listed);
  const auto again = co_await runtime_->Start(Request("one"));
  EXPECT_FALSE(again);
  if (!again) EXPECT_EQ(again.error().code(), Errc::kAlreadyExists);
  const auto lives = co_await handle->WaitDeath(milliseconds(50));
  EXPECT_FALSE(lives);
  if (!lives) EXPECT_EQ(lives.error().code(), Errc::kDeadlineExceeded);
  SOMA_CO_TRY(co_await handle->Stop());
  SOMA_CO_TRY(co_await handle->Stop());
  SOMA_CO_ASSIGN(const Death death, co_await handle->WaitDeath(kPatience));
  EXPECT_FALSE(death.reason.empty());
  SOMA_CO_ASSIGN(const bool still_listed, co_await IsListed("one"));
  EXPECT_FALSE(still_listed);
  co_return Status();
}

TEST_P(RuntimeConformance, ASandboxLivesFromStartToStop) {
  Check(&RuntimeConformance::ASandboxLivesFromStartToStop);
}

aio::Task<void> RuntimeConformance::CapturesAreAllThereOrNoneAndOnce() {
  SOMA_CO_ASSIGN(const auto handle, co_await runtime_->Start(Request("captured")));
  const CaptureSockets first = handle->TakeCaptures();
  const bool any = first.tcp4 || first.tcp6 || first.dns_udp || first.dns_tcp;
  const bool all = first.tcp4 && first.tcp6 && first.dns_udp && first.dns_tcp;
  EXPECT_EQ(any, all);
  EXPECT_EQ(any, GetParam() == "container");
  const CaptureSockets second = handle->TakeCaptures();
  EXPECT_FALSE(second.tcp4 || second.tcp6 || second.dns_udp || second.dns_tcp);
  co_return co_await handle->Stop();
}

TEST_P(RuntimeConformance, CapturesAreAllThereOrNoneAndOnce) {
  Check(&RuntimeConformance::CapturesAreAllThereOrNoneAndOnce);
}

aio::Task<void> RuntimeConformance::WhatIsNotThereIsNotFound() {
  for (const char* name : {"absent", "../base", ""}) {
    StartRequest request = Request("two");
    request.template_id = name;
    const auto started = co_await runtime_->Start(std::move(request));
    EXPECT_FALSE(started);
    if (!started) EXPECT_EQ(started.error().code(), Errc::kNotFound) << name;
  }
  const auto attached = co_await runtime_->Attach("nobody", {});
  EXPECT_FALSE(attached);
  if (!attached) EXPECT_EQ(attached.error().code(), Errc::kNotFound);
  co_return co_await runtime_->StopUnknown("nobody");
}

TEST_P(RuntimeConformance, WhatIsNotThereIsNotFound) {
  Check(&RuntimeConformance::WhatIsNotThereIsNotFound);
}

aio::Task<void> RuntimeConformance::ALeaseEndsItAndCanBeRenewed() {
  SOMA_CO_ASSIGN(const auto handle, co_await runtime_->Start(Request("leased")));
  SOMA_CO_TRY(co_await handle->RenewLease(seconds(1)));
  SOMA_CO_ASSIGN(const Death death, co_await handle->WaitDeath(kPatience));
  EXPECT_NE(death.reason, "");
  co_return co_await handle->Stop();
}

TEST_P(RuntimeConformance, ALeaseEndsItAndCanBeRenewed) {
  Check(&RuntimeConformance::ALeaseEndsItAndCanBeRenewed);
}

aio::Task<void> RuntimeConformance::CapabilitiesAreTrue() {
  const Capabilities can = runtime_->capabilities();
  SOMA_CO_ASSIGN(const auto handle, co_await runtime_->Start(Request("able")));
  SOMA_CO_TRY(co_await Greet(*handle));
  const Status frozen = co_await handle->Freeze();
  EXPECT_EQ(frozen.has_value(), can.freeze);
  if (can.freeze) {
    const auto silent = co_await link_->Call(wire::GetStats{}, milliseconds(500));
    EXPECT_FALSE(silent);
    SOMA_CO_TRY(co_await handle->Thaw());
    SOMA_CO_TRY(co_await link_->Call(wire::GetStats{}, kPatience));
  } else {
    EXPECT_EQ(frozen.error().code(), Errc::kUnimplemented);
  }
  const Status kept = co_await handle->Snapshot("kept");
  EXPECT_EQ(kept.has_value(), can.snapshot);
  if (!kept) EXPECT_EQ(kept.error().code(), Errc::kUnimplemented);
  co_return co_await handle->Stop();
}

TEST_P(RuntimeConformance, CapabilitiesAreTrue) { Check(&RuntimeConformance::CapabilitiesAreTrue); }

aio::Task<void> RuntimeConformance::ASuccessorTakesOverWithTheTokenOnly() {
  SOMA_CO_ASSIGN(auto first, co_await runtime_->Start(Request("kept")));
  SOMA_CO_TRY(co_await Greet(*first));
  SOMA_CO_ASSIGN(std::string pid, co_await Output("sleep 1000 >/dev/null 2>&1 & echo $!"));
  GuardToken token{};
  const auto wrong = co_await runtime_->Attach("kept", token);
  EXPECT_FALSE(wrong);
  token.fill(7);
  link_.reset();
  first.reset();
  std::unique_ptr<SandboxHandle> second;
  // The monitor has to notice that the first holder is gone.
  for (int tries = 0; !second && tries < 200; ++tries) {
    auto attached = co_await runtime_->Attach("kept", token);
    if (attached) second = *std::move(attached);
    if (!second) co_await aio::Sleep(loop_, milliseconds(50));
  }
  if (!second) co_return Fail(Errc::kUnavailable, "the sandbox was not handed over");
  SOMA_CO_TRY(co_await Greet(*second));
  if (pid.ends_with('\n')) pid.pop_back();
  SOMA_CO_ASSIGN(const std::string lives,
                 co_await Output(StrCat("test -d /proc/", pid, " && echo lives")));
  EXPECT_EQ(lives, "lives\n");
  SOMA_CO_TRY(co_await runtime_->StopUnknown("kept"));
  SOMA_CO_ASSIGN(const bool listed, co_await IsListed("kept"));
  EXPECT_FALSE(listed);
  co_return Status();
}

TEST_P(RuntimeConformance, ASuccessorTakesOverWithTheTokenOnly) {
  if (!HasSuccessors()) GTEST_SKIP() << "a sandbox of the fake level ends with its server";
  Check(&RuntimeConformance::ASuccessorTakesOverWithTheTokenOnly);
}

INSTANTIATE_TEST_SUITE_P(Levels, RuntimeConformance,
                         ::testing::Values("fake", "container", "emulated"),
                         [](const auto& level) { return level.param; });

}  // namespace
}  // namespace soma::runtime
