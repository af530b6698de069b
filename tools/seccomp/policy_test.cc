// SPDX-License-Identifier: Apache-2.0
#include "tools/seccomp/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>  // IWYU pragma: keep
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "base/result.h"

namespace soma::seccomp {
namespace {

constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | std::uint32_t{EPERM};
constexpr std::uint32_t kEnosys = SECCOMP_RET_ERRNO | std::uint32_t{ENOSYS};

std::string ListPath(const std::string& name) {
  return std::string(SOMA_SECCOMP_LISTS) + "/" + name + ".list";
}
Policy Load(const std::string& name) {
  auto policy = LoadPolicy(ListPath(name));
  EXPECT_TRUE(policy) << policy.error().message();
  return *policy;
}

std::uint32_t Ask(const Policy& policy, long number,
                  std::initializer_list<std::uint64_t> arguments = {}) {
  std::uint64_t all[6] = {};
  std::size_t i = 0;
  for (const std::uint64_t argument : arguments) all[i++] = argument;
  return Decide(policy, static_cast<std::uint32_t>(number), all);
}

class TempList {
 public:
  explicit TempList(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("soma-list-" + std::to_string(::getpid()) + ".list")) {
    std::ofstream(path_) << text;
  }
  ~TempList() { std::filesystem::remove(path_); }
  Result<Policy> Load() const { return LoadPolicy(path_); }

 private:
  std::filesystem::path path_;
};

TEST(Strict, RefusesTheKernelsAdministration) {
  const Policy strict = Load("strict");
  for (const long number : {SYS_mount,
                            SYS_umount2,
                            SYS_pivot_root,
                            SYS_chroot,
                            SYS_setns,
                            SYS_open_tree,
                            SYS_move_mount,
                            SYS_fsopen,
                            SYS_fsconfig,
                            SYS_fsmount,
                            SYS_fspick,
                            SYS_mount_setattr,
                            SYS_bpf,
                            SYS_perf_event_open,
                            SYS_keyctl,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_io_uring_setup,
                            SYS_io_uring_enter,
                            SYS_io_uring_register,
                            SYS_userfaultfd,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_kexec_load,
                            SYS_syslog,
                            SYS_iopl,
                            SYS_ioperm,
                            SYS_modify_ldt,
                            SYS_open_by_handle_at,
                            SYS_name_to_handle_at,
                            SYS_process_vm_writev,
                            SYS_pidfd_getfd,
                            SYS_kcmp,
                            SYS_fanotify_init,
                            SYS_swapon,
                            SYS_reboot,
                            SYS_clock_settime,
                            SYS_settimeofday,
                            SYS_adjtimex,
                            SYS_sethostname,
                            SYS_quotactl,
                            SYS_acct}) {
    EXPECT_EQ(Ask(strict, number), kEperm) << CallName(static_cast<std::uint32_t>(number));
  }
  for (const long number : {428L, 429L, 442L, 457L, 458L, 467L}) {  // new mount calls, statmount …
    EXPECT_EQ(Ask(strict, number), kEperm) << number;
  }
  EXPECT_EQ(Ask(strict, SYS_clone3), kEnosys);
}

TEST(Strict, ClonesThreadsAndProcessesButNoNamespaces) {
  const Policy strict = Load("strict");
  EXPECT_EQ(Ask(strict, SYS_clone, {CLONE_VM | CLONE_THREAD | CLONE_SIGHAND}), SECCOMP_RET_ALLOW);
  for (const int bit : {CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWIPC,
                        CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_PARENT}) {
    const auto flag = static_cast<std::uint64_t>(bit);
    EXPECT_EQ(Ask(strict, SYS_clone, {flag | 17}), kEperm) << flag;
    // The kernel looks at the lower half only, so nothing above may hide a flag.
    EXPECT_EQ(Ask(strict, SYS_clone, {flag | 0xFFFFFFFF00000000U}), kEperm) << flag;
  }
  EXPECT_EQ(Ask(strict, SYS_unshare, {CLONE_FS | CLONE_FILES}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_unshare, {CLONE_NEWUSER}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_unshare, {0x80}), kEperm) << "CLONE_NEWTIME";
}

TEST(Strict, TerminalInjectionIsSeenWhateverTheUpperHalfHolds) {
  const Policy strict = Load("strict");
  EXPECT_EQ(Ask(strict, SYS_ioctl, {0, TIOCSTI}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_ioctl, {0, TIOCSTI | 0x100000000U}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_ioctl, {0, TIOCLINUX}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_ioctl, {0, TCGETS}), SECCOMP_RET_ALLOW);
}

TEST(Strict, SocketFamiliesAndProtocolsByList) {
  const Policy strict = Load("strict");
  const std::uint64_t flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_INET, SOCK_STREAM | flags, 0}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_INET6, SOCK_DGRAM | flags, IPPROTO_UDP}),
            SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_UNIX, SOCK_SEQPACKET, 0}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}), SECCOMP_RET_ALLOW);
  const std::uint32_t no_protocol = SECCOMP_RET_ERRNO | std::uint32_t{EPROTONOSUPPORT};
  const std::uint32_t no_family = SECCOMP_RET_ERRNO | std::uint32_t{EAFNOSUPPORT};
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_INET, SOCK_STREAM, 262 /* MPTCP */}), no_protocol);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_INET, SOCK_SEQPACKET, 132 /* SCTP */}), no_protocol);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}), no_protocol);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_ICMP}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}), no_family);
  for (std::uint64_t family = 0; family < 64; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
      continue;
    EXPECT_EQ(Ask(strict, SYS_socket, {family, SOCK_STREAM, 0}), no_family) << family;
  }
}

TEST(Strict, NoSetIdBitsAndNoDevices) {
  const Policy strict = Load("strict");
  EXPECT_EQ(Ask(strict, SYS_chmod, {0, 04755}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_chmod, {0, 0755}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_fchmodat, {0, 0, 02755}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_openat, {0, 0, O_CREAT | O_WRONLY, 04755}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_openat, {0, 0, O_WRONLY, 04755}), SECCOMP_RET_ALLOW) << "mode unused";
  EXPECT_EQ(Ask(strict, SYS_openat, {0, 0, O_TMPFILE | O_RDWR, 04755}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_mknod, {0, S_IFCHR | 0666, 0x103}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_mknod, {0, S_IFIFO | 0666, 0}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_mknodat, {0, 0, S_IFBLK | 0666}), kEperm);
  EXPECT_EQ(Ask(strict, SYS_openat2), kEnosys);
}

TEST(Strict, NoListenerOfItsOwn) {
  const Policy strict = Load("strict");
  EXPECT_EQ(Ask(strict, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(strict, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER}),
            kEperm);
}

TEST(Rooted, OpensOnlyWhatItsListSays) {
  const Policy rooted = Load("rooted");
  EXPECT_EQ(Ask(rooted, SYS_chroot), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(rooted, SYS_sethostname), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(rooted, SYS_chmod, {0, 04755}), SECCOMP_RET_ALLOW);
  for (const long number : {SYS_mount, SYS_umount2, SYS_unshare, SYS_setns, SYS_bpf, SYS_keyctl,
                            SYS_init_module, SYS_open_by_handle_at, SYS_perf_event_open}) {
    EXPECT_EQ(Ask(rooted, number, {CLONE_NEWUSER}), kEperm)
        << CallName(static_cast<std::uint32_t>(number));
  }
  EXPECT_EQ(Ask(rooted, SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_ICMP}), kEperm);
}

TEST(Server, StartsNoProgram) {
  const Policy server = Load("server");
  EXPECT_EQ(Ask(server, SYS_execve), kEperm);
  EXPECT_EQ(Ask(server, SYS_execveat), kEperm);
  EXPECT_EQ(Ask(server, SYS_fork), kEperm);
  EXPECT_EQ(Ask(server, SYS_clone, {17}), kEperm);
  EXPECT_EQ(Ask(server, SYS_ptrace), kEperm);
  EXPECT_EQ(Ask(server, SYS_fchmodat, {3, 0x7FFF0000FFFFU, 0600}), SECCOMP_RET_ALLOW)
      << "the path is no mode";
  EXPECT_EQ(Ask(server, SYS_fchmodat, {3, 0, 04755}), kEperm);
}

TEST(Notify, OnlyWhatWritesWaits) {
  const auto policy = LoadPolicyWithNotify(ListPath("strict"), ListPath("notify"));
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(Ask(*policy, SYS_openat, {0, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0}),
            SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(*policy, SYS_openat, {0, 0, O_WRONLY, 0}), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(Ask(*policy, SYS_openat, {0, 0, O_CREAT, 0644}), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(Ask(*policy, SYS_openat, {0, 0, O_TMPFILE | O_WRONLY, 0644}), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(Ask(*policy, SYS_openat, {0, 0, O_CREAT | O_WRONLY, 04755}), kEperm) << "still refused";
  EXPECT_EQ(Ask(*policy, SYS_utimensat, {5, 0, 0, 0}), SECCOMP_RET_ALLOW) << "futimens";
  EXPECT_EQ(Ask(*policy, SYS_utimensat, {5, 0x7F0000000000U, 0, 0}), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(Ask(*policy, SYS_execve), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(Ask(*policy, SYS_connect), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(Ask(*policy, SYS_mount), kEperm);
}

TEST(Lists, RefuseWhatTheyDontUnderstand) {
  for (const char* text : {"permit read", "allow no_such_call", "allow",
                           "allow read when int9 in {0}", "allow read when int0 in {",
                           "allow read when int0 in {NO_SUCH}", "allow read when int0 like {0}",
                           "allow read\ndeny read", "allow read when int0 in {0x100000000}",
                           "errno ENONSENSE read", "include no-such-file.list", "number x 4000"}) {
    EXPECT_FALSE(TempList(text).Load()) << text;
  }
}

TEST(Lists, ACallWithoutAFittingLineIsRefused) {
  const auto policy = TempList("allow read when int0 in {7}  # a comment\n").Load();
  ASSERT_TRUE(policy);
  EXPECT_EQ(Ask(*policy, SYS_read, {7}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Ask(*policy, SYS_read, {8}), kEperm);
}

}  // namespace
}  // namespace soma::seccomp
