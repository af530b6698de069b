// SPDX-License-Identifier: Apache-2.0
#include "sys/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::sys {
namespace {

constexpr int kTriesMax = 32;

// 0, or the errno of LOOP_CONFIGURE. A file system without direct I/O answers EINVAL to the flag on
// some kernels, so the second try is without.
int Configure(int device, int file, LoopMode mode) {
  loop_config config{};
  config.fd = static_cast<__u32>(file);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
  if (mode == LoopMode::kReadOnly) config.info.lo_flags |= LO_FLAGS_READ_ONLY;
  if (ioctl(device, LOOP_CONFIGURE, &config) == 0) return 0;
  if (errno != EINVAL) return errno;
  config.info.lo_flags &= ~static_cast<__u32>(LO_FLAGS_DIRECT_IO);
  return ioctl(device, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
}

}  // namespace

Result<LoopDevice> AttachLoop(int file, LoopMode mode) {
  const Fd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return std::unexpected(Error::FromErrno(errno, "open /dev/loop-control"));
  for (int i = 0; i < kTriesMax; ++i) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return std::unexpected(Error::FromErrno(errno, "LOOP_CTL_GET_FREE"));
    std::string path = StrCat("/dev/loop", number);
    Fd device(open(path.c_str(), (mode == LoopMode::kReadOnly ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    if (!device) return std::unexpected(Error::FromErrno(errno, StrCat("open ", path)));
    const int error = Configure(device.get(), file, mode);
    if (error == 0) return LoopDevice{.device = std::move(device), .path = std::move(path)};
    // EBUSY: somebody took it between the two calls.
    if (error != EBUSY) {
      return std::unexpected(Error::FromErrno(error, StrCat("LOOP_CONFIGURE ", path)));
    }
  }
  return Fail(Errc::kUnavailable, "no loop device could be had");
}

}  // namespace soma::sys
