// SPDX-License-Identifier: Apache-2.0
#include "image/template_builder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "image/manifest.h"
#include "image/program.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::image {
namespace {

constexpr std::uint64_t kManifestBytesMax = std::uint64_t{1} << 20;
constexpr std::size_t kHashChunk = std::size_t{1} << 20;
constexpr std::string_view kWorkName = ".build";

Result<Manifest> ReadManifestAt(const std::string& directory) {
  SOMA_ASSIGN(const std::string text,
              sys::ReadWholeFile(directory + "/manifest.json", kManifestBytesMax));
  return ReadManifest(text);
}

Result<Fd> LockStore(const std::string& templates) {
  SOMA_TRY(sys::MakeDirectories(templates, 0700));
  SOMA_ASSIGN(Fd lock, sys::OpenFile(templates + "/.lock", O_RDWR | O_CREAT, 0600));
  SOMA_ASSIGN(const bool taken, sys::TryLock(lock, sys::LockKind::kExclusive));
  if (!taken) return Fail(Errc::kFailedPrecondition, StrCat("another build works in ", templates));
  return lock;
}

Status RemoveWork(const std::string& templates) {
  SOMA_ASSIGN(const sys::Dir store, sys::Dir::OpenAbsolute(templates));
  SOMA_ASSIGN(const sys::RelPath work, sys::RelPath::Parse(kWorkName));
  return store.RemoveTree(work);
}

Result<std::string> HashFile(const Fd& file, std::uint64_t size) {
  crypto::Sha256Stream hash;
  for (std::uint64_t offset = 0; offset < size;) {
    SOMA_ASSIGN(const std::string chunk, sys::ReadAt(file, offset, kHashChunk));
    if (chunk.empty()) return Fail(Errc::kDataLoss, "root.erofs became shorter while it was read");
    hash.Update(AsBytes(chunk));
    offset += chunk.size();
  }
  const crypto::Digest digest = hash.Finish();
  return Hex(digest);
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// The manifest of what the recipe left in `work`; its image is on the disk (synced) afterwards.
Result<Manifest> Describe(const std::string& work, const std::string& name, const std::string& key,
                          Clock& clock) {
  SOMA_ASSIGN(const Fd image, sys::OpenFile(work + "/root.erofs", O_RDONLY | O_NOFOLLOW));
  SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(image));
  SOMA_ASSIGN(std::string digest, HashFile(image, size));
  SOMA_TRY(sys::DataSync(image));
  SOMA_ASSIGN(const std::string packages,
              sys::ReadWholeFile(work + "/packages", kManifestBytesMax));
  const auto now = std::chrono::floor<std::chrono::seconds>(clock.Now());
  return Manifest{.id = MakeTemplateId(name, digest),
                  .name = name,
                  .key = key,
                  .erofs_sha256 = std::move(digest),
                  .erofs_bytes = size,
                  .created_seconds = now.time_since_epoch().count(),
                  .packages = Lines(packages)};
}

Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("rename to ", to)));
  }
  return {};
}

// Content that is there already stays: something may be using it, and it is the same.
Status TakeId(const std::string& templates, const std::string& work, const Manifest& manifest) {
  const std::string home = StrCat(templates, "/", manifest.id);
  const std::string text = WriteManifest(manifest);
  if (ReadManifestAt(home)) {
    SOMA_TRY(RemoveWork(templates));
    // The recipe's key may be another one that led to the same content.
    return sys::WriteFileAtomically(home + "/manifest.json", AsBytes(text), 0644);
  }
  SOMA_TRY(sys::WriteFileAtomically(work + "/manifest.json", AsBytes(text), 0644));
  SOMA_TRY(Rename(work, home));
  SOMA_ASSIGN(const Fd store, sys::OpenFile(templates, O_RDONLY | O_DIRECTORY));
  return sys::DataSync(store);
}

Status MoveName(const std::string& templates, const Manifest& manifest) {
  const std::string name = StrCat(templates, "/", manifest.name);
  const std::string next = StrCat(templates, "/.next-", manifest.name);
  if (unlink(next.c_str()) != 0 && errno != ENOENT) {
    return std::unexpected(Error::FromErrno(errno, StrCat("unlink ", next)));
  }
  if (symlink(manifest.id.c_str(), next.c_str()) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("symlink ", next)));
  }
  return Rename(next, name);
}

// Adds the unpacked tree if it is missing. Owners are kept when the caller may set them.
Status AddTree(const std::string& templates, const Manifest& manifest) {
  const std::string home = StrCat(templates, "/", manifest.id);
  struct stat info{};
  if (lstat((home + "/tree").c_str(), &info) == 0) return {};
  SOMA_TRY(RemoveWork(templates));
  const std::string work = StrCat(templates, "/", kWorkName);
  std::vector<std::string> command = {"fsck.erofs", "--extract=" + work, "--overwrite"};
  // An ordinary user can't give files away, and would lose modes to the umask.
  if (geteuid() != 0) command.insert(command.end(), {"--no-preserve-owner", "--preserve-perms"});
  command.push_back(home + "/root.erofs");
  SOMA_TRY(RunProgram(command));
  return Rename(work, home + "/tree");
}

Result<Manifest> RunRecipe(const BuildOptions& options, const std::string& key, Clock& clock) {
  const std::string work = StrCat(options.templates, "/", kWorkName);
  // Readable for whoever gets the directory handed in: the store above it is 0700.
  SOMA_TRY(sys::MakeDirectories(work, 0755));
  SOMA_TRY(RunProgram({options.recipe, "build", work}));
  SOMA_ASSIGN(Manifest manifest, Describe(work, options.name, key, clock));
  SOMA_TRY(TakeId(options.templates, work, manifest));
  SOMA_TRY(MoveName(options.templates, manifest));
  return manifest;
}

}  // namespace

Result<Built> BuildTemplate(const BuildOptions& options, Clock& clock) {
  if (!IsTemplateName(options.name)) {
    return Fail(Errc::kInvalidArgument,
                StrCat("not a template name: ", EscapeForTerminal(options.name)));
  }
  SOMA_ASSIGN(const Fd lock, LockStore(options.templates));
  SOMA_TRY_WHILE(RemoveWork(options.templates), "removing what an earlier build left");
  SOMA_ASSIGN(const std::string key_text, RunProgram({options.recipe, "key"}));
  const crypto::Digest digest = crypto::Sha256(key_text);
  const std::string key = Hex(digest);

  Built built;
  auto current = ReadManifestAt(StrCat(options.templates, "/", options.name));
  if (options.when_current == WhenCurrent::kReuse && current && current->key == key) {
    built = {.manifest = *std::move(current), .from_cache = true};
  } else {
    auto made = RunRecipe(options, key, clock);
    if (!made) {
      (void)RemoveWork(options.templates);  // else the next build does it
      return std::unexpected(
          std::move(made).error().While(StrCat("building the template ", options.name)));
    }
    built.manifest = *std::move(made);
  }
  if (options.unpack == Unpack::kYes) SOMA_TRY(AddTree(options.templates, built.manifest));
  return built;
}

Result<Manifest> ImportTemplate(const std::string& templates, const std::string& directory,
                                Unpack unpack) {
  SOMA_ASSIGN(const Manifest manifest, ReadManifestAt(directory));
  SOMA_ASSIGN(const Fd lock, LockStore(templates));
  SOMA_TRY_WHILE(RemoveWork(templates), "removing what an earlier build left");
  const std::string work = StrCat(templates, "/", kWorkName);
  SOMA_TRY(sys::MakeDirectories(work, 0755));
  const auto take = [&]() -> Status {
    SOMA_TRY(RunProgram({"cp", "--reflink=auto", "--", directory + "/root.erofs", work}));
    SOMA_ASSIGN(const Fd copy, sys::OpenFile(work + "/root.erofs", O_RDONLY | O_NOFOLLOW));
    SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(copy));
    SOMA_ASSIGN(const std::string digest, HashFile(copy, size));
    if (digest != manifest.erofs_sha256 || manifest.id != MakeTemplateId(manifest.name, digest)) {
      return Fail(Errc::kDataLoss, "root.erofs is not the image that manifest.json describes");
    }
    SOMA_TRY(sys::DataSync(copy));
    SOMA_TRY(TakeId(templates, work, manifest));
    SOMA_TRY(MoveName(templates, manifest));
    return unpack == Unpack::kYes ? AddTree(templates, manifest) : Status();
  };
  if (const Status taken = take(); !taken) {
    (void)RemoveWork(templates);  // else the next build does it
    return std::unexpected(
        Error(taken.error()).While(StrCat("importing ", EscapeForTerminal(directory))));
  }
  return manifest;
}

Result<std::vector<Manifest>> ListTemplates(const std::string& templates) {
  std::vector<Manifest> found;
  const auto store = sys::Dir::OpenAbsolute(templates);
  if (!store && store.error().code() == Errc::kNotFound) return found;
  if (!store) return std::unexpected(store.error());
  SOMA_ASSIGN(const auto names, store->List());
  for (const std::string& name : names) {
    auto manifest = ReadManifestAt(StrCat(templates, "/", name));
    // The names are symlinks to ids; each template counts once.
    if (manifest && manifest->id == name) found.push_back(*std::move(manifest));
  }
  std::ranges::sort(found, [](const Manifest& a, const Manifest& b) {
    return std::tuple(a.name, -a.created_seconds, a.id) <
           std::tuple(b.name, -b.created_seconds, b.id);
  });
  return found;
}

Result<Manifest> FindTemplate(const std::string& templates, const std::string& name_or_id) {
  auto found = sys::RelPath::Parse(name_or_id) ? ReadManifestAt(StrCat(templates, "/", name_or_id))
                                               : Result<Manifest>(Fail(Errc::kNotFound, ""));
  if (!found)
    return Fail(Errc::kNotFound, StrCat("there is no template ", EscapeForTerminal(name_or_id)));
  return found;
}

}  // namespace soma::image
