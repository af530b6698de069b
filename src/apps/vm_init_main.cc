// SPDX-License-Identifier: Apache-2.0
// soma-vm-init: the first program inside a virtual machine, /init of our initramfs.
//
// Loads the kernel modules listed in /modules (in order), builds the root (read-only disk below,
// scratch above, as an overlay), mounts what a Linux program expects, and becomes the program that
// was asked for. It starts nothing else, opens no network and reads no byte from outside but the
// kernel's command line, which the launcher wrote. Any failure is fatal: one line on the console
// and on QEMU's log port (launcher/vm/machine.h), then power off, so that the monitor outside sees
// an ended machine instead of a hanging one. A boot that succeeds says there how long its stages
// took.
//
// Arguments (the kernel hands over what follows "--"):
//   root=SERIAL:FSTYPE   the read-only disk, found by its virtio serial number (device order is
//   QEMU's affair) upper=SERIAL:FSTYPE  the scratch disk; "upper=tmpfs" keeps the scratch in memory
//   guest                become /soma-guest of the initramfs, with the virtio port "soma.wire" as
//   descriptor 3 exec=PATH            become PATH of the new root instead (tests)
#include <dirent.h>
#include <fcntl.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <net/if.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma {
namespace {

constexpr std::string_view kWirePort = "soma.wire";
// What the guest agent finds the wire at, at every level.
constexpr int kWireFd = 3;
// Devices appear while the module loads; a second is for a machine under heavy emulation load.
constexpr int kDeviceWaitRounds = 1000;
constexpr timespec kDeviceWaitStep = {.tv_sec = 0, .tv_nsec = 1'000'000};

constexpr unsigned short kLogPort =
    0x402;  // kVmLogPort; nobody listens there in test-vm's machines

void Log(std::string_view line) {
  if (ioperm(kLogPort, 1, 1) != 0) return;
  for (const char byte : line) outb(static_cast<unsigned char>(byte), kLogPort);
  // The program that comes next has no business with ports.
  (void)ioperm(kLogPort, 1, 0);
}

// Milliseconds since the kernel has a clock, at the end of each stage.
class Stages {
 public:
  void End(std::string_view name) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    line_ += StrCat(" ", name, " ", (now.tv_sec * 1000) + (now.tv_nsec / 1'000'000));
  }
  std::string Line() const { return StrCat("soma-vm-init: ms at the end of:", line_, "\n"); }

 private:
  std::string line_;
};

struct Disk {
  std::string serial;
  std::string fstype;
};

struct Options {
  Disk root;
  std::optional<Disk> upper;  // empty: tmpfs
  std::string exec;           // empty: the guest agent
};

Result<Disk> ParseDisk(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == text.size()) {
    return Fail(Errc::kInvalidArgument, StrCat("not SERIAL:FSTYPE: ", text));
  }
  return Disk{.serial = std::string(text.substr(0, colon)),
              .fstype = std::string(text.substr(colon + 1))};
}

Result<Options> ParseOptions(int count, char** arguments) {
  Options options;
  bool has_target = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with("root=")) {
      SOMA_ASSIGN(options.root, ParseDisk(argument.substr(5)));
    } else if (argument == "upper=tmpfs") {
      options.upper.reset();
    } else if (argument.starts_with("upper=")) {
      SOMA_ASSIGN(options.upper, ParseDisk(argument.substr(6)));
    } else if (argument.starts_with("exec=")) {
      options.exec = argument.substr(5);
      has_target = true;
    } else if (argument == "guest") {
      has_target = true;
    } else {
      return Fail(Errc::kInvalidArgument, StrCat("unknown argument ", argument));
    }
  }
  if (options.root.serial.empty() || !has_target) {
    return Fail(Errc::kInvalidArgument, "needs root=… and one of guest, exec=…");
  }
  return options;
}

struct MountAt {
  const char* source;
  const char* target;
  const char* fstype;
  unsigned long flags;
  const char* data;
};

Status Mount(const MountAt& mount_at) {
  if (mkdir(mount_at.target, 0755) != 0 && errno != EEXIST && errno != EROFS) {
    return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", mount_at.target)));
  }
  if (mount(mount_at.source, mount_at.target, mount_at.fstype, mount_at.flags, mount_at.data) !=
      0) {
    return std::unexpected(
        Error::FromErrno(errno, StrCat("mount ", mount_at.source, " on ", mount_at.target)));
  }
  return {};
}

Result<std::string> ReadSmallFile(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::unexpected(Error::FromErrno(errno, StrCat("open ", path)));
  std::array<char, 4096> buffer;
  std::string text;
  ssize_t got = 0;
  while ((got = read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (got < 0) return std::unexpected(Error::FromErrno(errno, StrCat("read ", path)));
  return text;
}

Status LoadModules() {
  SOMA_ASSIGN(const std::string list, ReadSmallFile("/modules"));
  for (const std::string_view name : Split(list, '\n')) {
    if (name.empty()) continue;
    const std::string path = StrCat("/lib/", name);
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::unexpected(Error::FromErrno(errno, StrCat("open ", path)));
    if (syscall(SYS_finit_module, file.get(), "", 0) != 0 && errno != EEXIST) {
      return std::unexpected(Error::FromErrno(errno, StrCat("finit_module ", path)));
    }
  }
  return {};
}

// The entry below `class_path` whose file `attribute` holds exactly `wanted`, waiting for it to
// appear.
Result<std::string> FindDevice(const std::string& class_path, std::string_view attribute,
                               std::string_view wanted) {
  for (int round = 0; round < kDeviceWaitRounds; ++round) {
    if (DIR* directory = opendir(class_path.c_str()); directory != nullptr) {
      std::string found;
      while (const dirent* entry = readdir(directory)) {
        const auto value = ReadSmallFile(StrCat(class_path, "/", entry->d_name, "/", attribute));
        // A serial comes without, a port's name with a newline at its end.
        if (value && std::string_view(*value).substr(0, value->find('\n')) == wanted)
          found = entry->d_name;
      }
      closedir(directory);
      if (!found.empty()) return found;
    }
    nanosleep(&kDeviceWaitStep, nullptr);
  }
  return Fail(Errc::kNotFound,
              StrCat("no device in ", class_path, " with ", attribute, " ", wanted));
}

Status MountDisk(const Disk& disk, const char* target, unsigned long flags) {
  SOMA_ASSIGN(const std::string name, FindDevice("/sys/block", "serial", disk.serial));
  const std::string device = StrCat("/dev/", name);
  return Mount({device.c_str(), target, disk.fstype.c_str(), flags, nullptr});
}

Status BuildRoot(const Options& options) {
  SOMA_TRY(MountDisk(options.root, "/lower", MS_RDONLY));
  if (options.upper) {
    SOMA_TRY(MountDisk(*options.upper, "/scratch", MS_NODEV | MS_NOATIME));
  } else {
    SOMA_TRY(Mount({"tmpfs", "/scratch", "tmpfs", MS_NODEV, "mode=0755,size=75%"}));
  }
  for (const char* directory : {"/scratch/upper", "/scratch/work"}) {
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) {
      return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", directory)));
    }
  }
  return Mount({"overlay", "/root", "overlay", 0,
                "lowerdir=/lower,upperdir=/scratch/upper,workdir=/scratch/work"});
}

// The new root's own views; the early ones of the initramfs vanish with it.
Status MountSystem() {
  constexpr unsigned long kPlain = MS_NOSUID | MS_NOEXEC | MS_NODEV;
  const MountAt mounts[] = {
      {"proc", "/root/proc", "proc", kPlain, nullptr},
      {"sysfs", "/root/sys", "sysfs", kPlain, nullptr},
      {"devtmpfs", "/root/dev", "devtmpfs", MS_NOSUID, "mode=0755"},
      {"devpts", "/root/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=0620,gid=5,ptmxmode=0666"},
      {"tmpfs", "/root/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
      {"tmpfs", "/root/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"},
      {"tmpfs", "/root/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
      {"cgroup2", "/root/sys/fs/cgroup", "cgroup2", kPlain, nullptr},
  };
  for (const MountAt& entry : mounts) SOMA_TRY(Mount(entry));
  struct Link {
    const char* target;
    const char* path;
  };
  const Link links[] = {{"/proc/self/fd", "/root/dev/fd"},
                        {"/proc/self/fd/0", "/root/dev/stdin"},
                        {"/proc/self/fd/1", "/root/dev/stdout"},
                        {"/proc/self/fd/2", "/root/dev/stderr"}};
  for (const Link& link : links) {
    if (symlink(link.target, link.path) != 0 && errno != EEXIST) {
      return std::unexpected(Error::FromErrno(errno, StrCat("symlink ", link.path)));
    }
  }
  return {};
}

// A machine without a network card still needs its loopback.
Status RaiseLoopback() {
  const Fd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd) return std::unexpected(Error::FromErrno(errno, "socket"));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket_fd.get(), SIOCSIFFLAGS, &request) != 0) {
    return std::unexpected(Error::FromErrno(errno, "raising lo"));
  }
  return {};
}

Status EnterRoot() {
  if (chdir("/root") != 0 || mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || chroot(".") != 0 ||
      chdir("/") != 0) {
    return std::unexpected(Error::FromErrno(errno, "entering the new root"));
  }
  return {};
}

// Until the server gives the sandbox its own name; sudo complains about a host without one. The
// template's /etc/hosts knows it.
Status NameHost() {
  constexpr std::string_view kName = "soma";
  if (sethostname(kName.data(), kName.size()) != 0) {
    return std::unexpected(Error::FromErrno(errno, "sethostname"));
  }
  return {};
}

// A program of its own that keeps a descriptor across execve must have it without close-on-exec.
Status PlaceAt(Fd from, int number) {
  if (from.get() == number) {
    if (fcntl(number, F_SETFD, 0) != 0) return std::unexpected(Error::FromErrno(errno, "fcntl"));
    (void)from.Release();
    return {};
  }
  if (dup2(from.get(), number) < 0) return std::unexpected(Error::FromErrno(errno, "dup2"));
  return {};
}

Status BecomeGuest(const Fd& program) {
  SOMA_ASSIGN(const std::string port, FindDevice("/sys/class/virtio-ports", "name", kWirePort));
  Fd wire(open(StrCat("/dev/", port).c_str(), O_RDWR | O_CLOEXEC));
  if (!wire) return std::unexpected(Error::FromErrno(errno, StrCat("open ", port)));
  SOMA_TRY(PlaceAt(std::move(wire), kWireFd));
  const char* const arguments[] = {"soma-guest", "--wire=virtio", nullptr};
  const char* const environment[] = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", nullptr};
  syscall(SYS_execveat, program.get(), "", arguments, environment, AT_EMPTY_PATH);
  return std::unexpected(Error::FromErrno(errno, "exec of soma-guest"));
}

Status BecomeProgram(const std::string& path) {
  const char* const arguments[] = {path.c_str(), nullptr};
  const char* const environment[] = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
      "LANG=C.UTF-8", nullptr};
  execve(path.c_str(), const_cast<char**>(arguments), const_cast<char**>(environment));
  return std::unexpected(Error::FromErrno(errno, StrCat("exec of ", path)));
}

// The initramfs holds no device nodes, so the kernel starts us without any descriptor. A machine
// without a console has /dev/console too, but opening it fails there.
Status OpenStandardStreams() {
  int raw = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (raw < 0) raw = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (raw < 0) return std::unexpected(Error::FromErrno(errno, "open /dev/null"));
  // dup2 onto itself would keep close-on-exec.
  const Fd above(fcntl(raw, F_DUPFD_CLOEXEC, kWireFd));
  for (int number = 0; number < kWireFd; ++number) {
    if (dup2(above.get(), number) < 0) return std::unexpected(Error::FromErrno(errno, "dup2"));
  }
  if (raw >= kWireFd) close(raw);
  return {};
}

Status Boot(int count, char** arguments) {
  Stages stages;
  stages.End("kernel");
  SOMA_TRY(Mount({"devtmpfs", "/dev", "devtmpfs", MS_NOSUID, nullptr}));
  SOMA_TRY(OpenStandardStreams());
  SOMA_TRY(Mount({"proc", "/proc", "proc", 0, nullptr}));
  SOMA_TRY(Mount({"sysfs", "/sys", "sysfs", 0, nullptr}));
  SOMA_ASSIGN(const Options options, ParseOptions(count, arguments));
  SOMA_TRY(LoadModules());
  stages.End("modules");
  SOMA_TRY(BuildRoot(options));
  SOMA_TRY(MountSystem());
  SOMA_TRY(RaiseLoopback());
  SOMA_TRY(NameHost());
  // Above the wire's number, so that placing the wire cannot close it.
  const Fd guest(
      fcntl(Fd(open("/soma-guest", O_RDONLY | O_CLOEXEC)).get(), F_DUPFD_CLOEXEC, kWireFd + 1));
  SOMA_TRY(EnterRoot());
  stages.End("root");
  Log(stages.Line());
  return options.exec.empty() ? BecomeGuest(guest) : BecomeProgram(options.exec);
}

}  // namespace
}  // namespace soma

int main(int argc, char** argv) {
  const soma::Status status = soma::Boot(argc, argv);
  const std::string line = soma::StrCat("soma-vm-init: ", status.error().message(), "\n");
  (void)!write(STDERR_FILENO, line.data(), line.size());
  soma::Log(line);
  sync();
  reboot(LINUX_REBOOT_CMD_POWER_OFF);
  return 1;
}
