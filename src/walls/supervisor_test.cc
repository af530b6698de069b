// SPDX-License-Identifier: Apache-2.0
// The supervisor against real tasks: a child under the strict filter makes calls, the parent
// serves. Needs no privilege.
#include "walls/supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/message_socket.h"
#include "sys/process.h"
#include "sys/real_clock.h"
#include "sys/seccomp.h"
#include "walls/denied.h"
#include "walls/judge.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {
namespace {

namespace fs = std::filesystem;

// Refuses what `refuse` says, and remembers what it was asked.
class TestJudge final : public Judge {
 public:
  Verdict Decide(const Request& request) override {
    asked.push_back(request);
    return refuse(request) ? Verdict::Deny(EROFS, "workspace only", "name it in filesystem.write")
                           : Verdict::Allow();
  }
  std::function<bool(const Request&)> refuse = [](const Request&) { return false; };
  std::vector<Request> asked;
};

constexpr int kSetupFailed = 99;

// Starts `task` in a child under strict+notify. The child ends with the task's value as exit code.
struct Child {
  sys::Process process;
  Fd listener;
};
Child Start(const std::function<int()>& task) {
  auto pair = sys::MakeSocketPair(SOCK_SEQPACKET);
  const sys::CloneResult clone = sys::Clone(0);
  EXPECT_GE(clone.pid, 0);
  if (clone.pid == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const auto loaded =
        sys::LoadSeccompWithListener(ProgramFor(SeccompProfile::kStrict, SeccompNotify::kMutating));
    const std::uint8_t byte = 1;
    const int descriptors[] = {loaded.listener.get()};
    if (loaded.error != 0 || sys::SendPacketRaw(pair->second.get(), {&byte, 1}, descriptors) != 0) {
      ::_exit(kSetupFailed);
    }
    ::close(loaded.listener.get());
    ::_exit(task());
  }
  std::uint8_t byte[1];
  auto packet = sys::ReceivePacket(pair->first, byte, 1);
  EXPECT_TRUE(packet && packet->descriptors.size() == 1);
  return {.process = sys::Process(clone.pid, Fd(clone.pidfd)),
          .listener = std::move(packet->descriptors[0])};
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    std::string pattern = fs::temp_directory_path() / "soma-supervisor-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SupervisorTest() override { fs::remove_all(folder_); }

  // Serves the task to its end; its exit code.
  int Run(const std::function<int()>& task) {
    Child child = Start(task);
    Supervisor supervisor(std::move(child.listener), judge_, clock_);
    while (true) {
      // Linux 6.1 reports the filter's end (POLLHUP) only when its last task was reaped, which
      // happens below.
      pollfd polls[] = {{.fd = supervisor.listener().get(), .events = POLLIN, .revents = 0},
                        {.fd = child.process.pidfd().get(), .events = POLLIN, .revents = 0}};
      ::poll(polls, 2, -1);
      if ((polls[0].revents & POLLIN) == 0 || !supervisor.ServeOne()) break;
    }
    served_ = supervisor.served();
    denied_ = supervisor.denied().Drain();
    const auto end = child.process.Wait();
    return end && end->exited ? end->code : -1;
  }
  std::string Path(std::string_view name) const { return folder_ + "/" + std::string(name); }
  void Refuse(const std::string& real) {
    judge_.refuse = [real](const Request& request) { return request.path.real == real; };
  }

  std::string folder_;
  TestJudge judge_;
  sys::RealClock clock_;
  std::uint64_t served_ = 0;
  std::vector<Denied> denied_;
};

int OpenAndReport(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  return fd >= 0 ? 0 : errno;
}

TEST_F(SupervisorTest, RefusalIsExactAndNothingHappens) {
  const std::string path = Path("secret");
  Refuse(path);
  EXPECT_EQ(Run([&] { return OpenAndReport(path, O_WRONLY | O_CREAT); }), EROFS);
  EXPECT_FALSE(fs::exists(path));
  ASSERT_EQ(denied_.size(), 1U);
  EXPECT_EQ(denied_[0].object, path);
  EXPECT_EQ(denied_[0].tried, "open for writing");
  EXPECT_EQ(denied_[0].rule, "workspace only");
  EXPECT_EQ(denied_[0].remedy, "name it in filesystem.write");
  EXPECT_EQ(denied_[0].errno_value, EROFS);
  EXPECT_FALSE(denied_[0].command.empty());
}

TEST_F(SupervisorTest, AllowedCallsGoOn) {
  EXPECT_EQ(Run([&] { return OpenAndReport(Path("new"), O_WRONLY | O_CREAT); }), 0);
  EXPECT_TRUE(fs::exists(Path("new")));
  EXPECT_TRUE(denied_.empty());
  ASSERT_EQ(judge_.asked.size(), 1U);
  EXPECT_EQ(judge_.asked[0].path.real, Path("new"));
  EXPECT_FALSE(judge_.asked[0].path.exists);
}

TEST_F(SupervisorTest, ReadingIsNeverNotified) {
  std::ofstream(Path("file")) << "x";
  EXPECT_EQ(Run([&] { return OpenAndReport(Path("file"), O_RDONLY); }), 0);
  EXPECT_EQ(served_, 0U);
}

// An O_PATH descriptor writes nothing, whatever the other flags say.
TEST_F(SupervisorTest, PathDescriptorsAreNotAskedAbout) {
  std::ofstream(Path("file")) << "x";
  EXPECT_EQ(Run([&] { return OpenAndReport(Path("file"), O_PATH | O_RDWR); }), 0);
  EXPECT_EQ(served_, 1U);
  EXPECT_TRUE(judge_.asked.empty());
}

TEST_F(SupervisorTest, NamesTheRealObjectBehindSymlinks) {
  std::ofstream(Path("real")) << "x";
  fs::create_symlink("real", Path("link"));
  fs::create_symlink(Path("to-come"), Path("dangling"));
  Run([&] {
    OpenAndReport(Path("link"), O_WRONLY);
    OpenAndReport(Path("./link"), O_WRONLY | O_NOFOLLOW);
    OpenAndReport(Path("dangling"), O_WRONLY | O_CREAT);
    return 0;
  });
  ASSERT_EQ(judge_.asked.size(), 3U);
  EXPECT_EQ(judge_.asked[0].path.real, Path("real"));
  EXPECT_EQ(judge_.asked[0].path.absolute, Path("link"));
  EXPECT_EQ(judge_.asked[1].path.real, Path("link"));
  EXPECT_EQ(judge_.asked[2].path.real, Path("to-come"));
}

TEST_F(SupervisorTest, RelativePathsAndDescriptors) {
  fs::create_directory(Path("sub"));
  Run([&] {
    if (::chdir(folder_.c_str()) != 0) return 1;
    const int directory = ::open("sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::mkdirat(directory, "../made", 0700);
    ::renameat(directory, "../made", AT_FDCWD, "sub/moved");
    return ::fchownat(directory, "", ::getuid(), ::getgid(), AT_EMPTY_PATH);
  });
  ASSERT_EQ(judge_.asked.size(), 3U);
  EXPECT_EQ(judge_.asked[0].kind, RequestKind::kCreate);
  EXPECT_EQ(judge_.asked[0].path.real, Path("made"));
  EXPECT_EQ(judge_.asked[1].kind, RequestKind::kRename);
  EXPECT_EQ(judge_.asked[1].path.real, Path("sub/moved"));
  EXPECT_EQ(judge_.asked[1].other.real, Path("made"));
  EXPECT_EQ(judge_.asked[2].path.real, Path("sub"));
  EXPECT_TRUE(fs::exists(Path("sub/moved")));
}

// A shell that searches PATH executes names that don't exist: no verdict is needed, none is
// reported.
TEST_F(SupervisorTest, ExecutingWhatIsNotThereIsNoRefusal) {
  judge_.refuse = [](const Request&) { return true; };
  EXPECT_EQ(Run([&] {
              char* const none[] = {nullptr};
              ::execve(Path("no-such-program").c_str(), none, none);
              return errno;
            }),
            ENOENT);
  EXPECT_TRUE(denied_.empty());
}

TEST_F(SupervisorTest, ExecutingWhatIsThereIsJudged) {
  Refuse(fs::canonical("/bin/true"));
  EXPECT_EQ(Run([] {
              char* const none[] = {nullptr};
              ::execve("/bin/true", none, none);
              return errno;
            }),
            EROFS);
  ASSERT_EQ(denied_.size(), 1U);
  EXPECT_EQ(denied_[0].tried, "execute");
}

TEST_F(SupervisorTest, ConnectsNameTheirAddress) {
  judge_.refuse = [](const Request& request) { return request.kind == RequestKind::kConnect; };
  EXPECT_EQ(Run([] {
              sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(80)};
              ::inet_pton(AF_INET, "192.0.2.7", &address.sin_addr);
              const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
              (void)::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
              return errno;
            }),
            EROFS);
  ASSERT_EQ(denied_.size(), 1U);
  EXPECT_EQ(denied_[0].object, "192.0.2.7:80");
}

TEST_F(SupervisorTest, ForeignTextIsEscaped) {
  const std::string path = Path("a\x1b[2Jb\nc");
  Refuse(path);
  Run([&] { return OpenAndReport(path, O_WRONLY | O_CREAT); });
  ASSERT_EQ(denied_.size(), 1U);
  EXPECT_EQ(denied_[0].object, Path("a\\x1b[2Jb\\x0ac"));
  EXPECT_EQ(denied_[0].asked.find('\x1b'), std::string::npos);
}

// Bad pointers and endless paths get the kernel's own answer.
TEST_F(SupervisorTest, UnreadableArgumentsGetTheKernelsAnswer) {
  judge_.refuse = [](const Request&) { return true; };
  EXPECT_EQ(Run([] {
              ::mkdir(reinterpret_cast<const char*>(16), 0700);
              return errno;
            }),
            EFAULT);
  EXPECT_EQ(Run([] {
              const std::string endless(5000, 'a');
              ::mkdir(endless.c_str(), 0700);
              return errno;
            }),
            ENAMETOOLONG);
  EXPECT_TRUE(judge_.asked.empty());
}

// The path ends one byte before a page that isn't mapped.
TEST_F(SupervisorTest, PathsMayEndAtTheEndOfMemory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(Run([&] {
              auto* memory = static_cast<char*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
              ::munmap(memory + page, page);
              const std::string path = Path("edge");
              char* at = memory + page - path.size() - 1;
              path.copy(at, path.size());
              return ::mkdir(at, 0700) == 0 ? 0 : errno;
            }),
            0);
  ASSERT_EQ(judge_.asked.size(), 1U);
  EXPECT_EQ(judge_.asked[0].path.real, Path("edge"));
}

// Nobody serves any more: the calls fail, nothing is written.
TEST_F(SupervisorTest, WithoutASupervisorNothingIsWritten) {
  Child child = Start([&] { return OpenAndReport(Path("new"), O_WRONLY | O_CREAT); });
  {
    const Supervisor gone(std::move(child.listener), judge_, clock_);
  }
  const auto end = child.process.Wait();
  ASSERT_TRUE(end && end->exited);
  EXPECT_EQ(end->code, ENOSYS);
  EXPECT_FALSE(fs::exists(Path("new")));
}

// A signal storm must not double calls (measured without WAIT_KILLABLE_RECV: 17 % more events than
// calls).
TEST_F(SupervisorTest, SignalsDontRepeatCalls) {
  constexpr int kCalls = 2000;
  EXPECT_EQ(Run([&] {
              struct sigaction action{};
              action.sa_handler = [](int) {};
              action.sa_flags = SA_RESTART;
              ::sigaction(SIGALRM, &action, nullptr);
              const itimerval often{.it_interval = {.tv_usec = 50}, .it_value = {.tv_usec = 50}};
              ::setitimer(ITIMER_REAL, &often, nullptr);
              for (int i = 0; i < kCalls; ++i) ::rmdir("/nonexistent-soma");
              return 0;
            }),
            0);
  EXPECT_GE(served_, std::uint64_t{kCalls});
  // A call may be interrupted before it was received, hence restarted unseen; never after.
  EXPECT_LE(judge_.asked.size(), std::size_t{kCalls} + 2);
}

}  // namespace
}  // namespace soma::walls
