// SPDX-License-Identifier: Apache-2.0
#include "plan/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/decide.h"
#include "policy/load.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "walls/plan.h"

namespace soma::plan {
namespace {

using policy::PathFact;
using policy::PathKind;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

PathFact Dir(std::string path) {
  return {.path = path,
          .real = path,
          .kind = PathKind::kDirectory,
          .owner_uid = 1000,
          .owner_gid = 1000};
}
PathFact File(std::string path) {
  return {
      .path = path, .real = path, .kind = PathKind::kFile, .owner_uid = 1000, .owner_gid = 1000};
}
PathFact Link(std::string path, std::string real) {
  return {.path = std::move(path), .real = real, .kind = PathKind::kDirectory, .link_text = real};
}

std::string KindText(const walls::MountItem& item) {
  using walls::MountKind;
  switch (item.kind) {
    case MountKind::kBind:
      return item.read_only ? "ro" : "rw";
    case MountKind::kTmpfs:
      return item.read_only ? "empty" : "tmpfs";
    case MountKind::kHide:
      return "hide";
    case MountKind::kSymlink:
      return "link";
    case MountKind::kDirectory:
    case MountKind::kFile:
      return "closed";
    case MountKind::kProc:
    case MountKind::kDevices:
      return "own";
    case MountKind::kOverlay:
      return "overlay";
  }
  return "?";
}

class ViewTest : public testing::Test {
 protected:
  ViewTest() {
    facts_.root = {Link("/bin", "/usr/bin"),
                   Dir("/dev"),
                   Dir("/etc"),
                   Dir("/home"),
                   Dir("/proc"),
                   Dir("/tmp"),
                   Dir("/usr"),
                   Dir("/var")};
    facts_.root.front().link_text = "usr/bin";
    facts_.workspace = Dir("/home/u/proj");
    facts_.rules = {Dir("/home"), Dir("/home/u"), Dir("/home/u/proj")};
  }

  // "kind target" in the order of mounting.
  std::vector<std::string> Build(std::string_view toml = "", std::string_view project = "") {
    std::vector<policy::Source> sources;
    if (!toml.empty())
      sources.push_back({policy::LayerKind::kUser, policy::Format::kToml, "u", std::string(toml)});
    if (!project.empty()) {
      sources.push_back(
          {policy::LayerKind::kProject, policy::Format::kToml, "p", std::string(project)});
    }
    auto policy = policy::Load({.home = "/home/u", .workspace = "/home/u/proj"}, sources, {});
    EXPECT_TRUE(policy) << policy.error().message();
    policy_ = *std::move(policy);
    auto view = BuildView({.policy = policy_, .facts = facts_, .home = "/home/u", .ids = ids_});
    if (!view) return {view.error().message()};
    view_ = *std::move(view);
    std::vector<std::string> out;
    for (const walls::MountItem& item : view_.mounts)
      out.push_back(KindText(item) + " " + item.target);
    return out;
  }

  policy::PathFacts facts_;
  policy::Policy policy_;
  std::optional<IdShift> ids_;
  View view_;
};

TEST_F(ViewTest, DevShowsTheSystemTheWorkspaceAndAPrivateHome) {
  EXPECT_THAT(Build(), ElementsAre("empty /", "link /bin", "own /dev", "ro /etc", "tmpfs /home/u",
                                   "rw /home/u/proj", "own /proc", "tmpfs /tmp", "ro /usr",
                                   "tmpfs /var/tmp"));
  EXPECT_THAT(view_.scratch, ElementsAre("/home/u", "/tmp", "/var/tmp"));
}

TEST_F(ViewTest, KeysThatExistAreSeenToBeClosed) {
  facts_.rules.push_back(Dir("/home/u/.ssh"));
  facts_.rules.push_back(File("/home/u/.netrc"));
  facts_.rules.push_back(Dir("/home/u/.cargo/bin"));
  const auto mounts = Build();
  EXPECT_THAT(mounts, IsSupersetOf({"closed /home/u/.ssh", "closed /home/u/.netrc",
                                    "ro /home/u/.cargo/bin"}));
  std::vector<std::string> hidden;
  for (const HiddenPath& path : view_.hidden) hidden.push_back(path.path);
  EXPECT_THAT(hidden, IsSupersetOf({"/home/u/.ssh", "/home/u/.netrc"}));
}

TEST_F(ViewTest, HidesBelowWhatIsVisible) {
  facts_.rules.push_back(Dir("/etc/secret"));
  facts_.rules.push_back(File("/etc/secret/shown"));
  facts_.rules.push_back(File("/home/u/proj/.env"));
  EXPECT_THAT(
      Build("[filesystem]\nhide = [\"/etc/secret\", \".env\"]\nread = [\"/etc/secret/shown\"]\n"),
      IsSupersetOf({"empty /etc/secret", "ro /etc/secret/shown", "hide /home/u/proj/.env"}));
}

TEST_F(ViewTest, NarrowsAPartOfTheWorkspaceToReading) {
  facts_.rules.push_back(Dir("/home/u/proj/docs"));
  EXPECT_THAT(Build("", "[filesystem]\nread = [\"docs\"]\n"), Contains("ro /home/u/proj/docs"));
}

TEST_F(ViewTest, FoldersAboveWhatIsCoveredInAWritablePlaceArePinned) {
  facts_.rules.push_back(File("/home/u/proj/a/b/.env"));
  facts_.rules.push_back(Dir("/home/u/proj/a/b/docs"));
  facts_.rules.push_back(File("/home/u/proj/a/c/key"));
  facts_.rules.push_back(Dir("/home/u/proj/open/x"));
  facts_.rules.push_back(File("/home/u/proj/top"));
  const auto mounts = Build(
      "[filesystem]\nhide = [\"a/b/.env\", \"a/c/key\", \"top\"]\nread = [\"a/b/docs\"]\nwrite = "
      "[\"open/x\"]\n");
  const std::vector<std::string> wanted = {
      "rw /home/u/proj",           "rw /home/u/proj/a",
      "rw /home/u/proj/a/b",       "hide /home/u/proj/a/b/.env",
      "ro /home/u/proj/a/b/docs",  "rw /home/u/proj/a/c",
      "hide /home/u/proj/a/c/key", "hide /home/u/proj/top"};
  std::vector<std::string> below;
  for (const std::string& mount : mounts) {
    if (mount.contains("/home/u/proj")) below.push_back(mount);
  }
  EXPECT_EQ(below, wanted);
  for (const walls::MountItem& item : view_.mounts) {
    if (item.target == "/home/u/proj/a/b") EXPECT_EQ(item.source, "/home/u/proj/a/b");
  }
  // They open nothing.
  for (const walls::LandlockRule& rule : view_.landlock) {
    EXPECT_FALSE(rule.path.starts_with("/home/u/proj/")) << rule.path;
  }
}

TEST_F(ViewTest, WritableBelowReadOnly) {
  facts_.rules.push_back(Dir("/usr/local/out"));
  EXPECT_THAT(Build("[filesystem]\nwrite = [\"/usr/local/out\"]\n"), Contains("rw /usr/local/out"));
}

TEST_F(ViewTest, AHiddenLinkHidesWhatItPointsTo) {
  facts_.rules.push_back(Link("/home/u/.ssh", "/etc/keys"));
  EXPECT_THAT(Build(), Contains("hide /etc/keys"));
  EXPECT_EQ(VerdictOn(view_.effective, "/etc/keys/id"), policy::PathVerdict::kHide);
}

TEST_F(ViewTest, ALinkPlantedInTheWorkspaceShowsNothing) {
  facts_.rules.push_back(Link("/home/u/proj/vendor", "/home/u/.ssh"));
  const auto mounts = Build("[filesystem]\nread = [\"vendor\"]\n");
  for (const walls::MountItem& item : view_.mounts) EXPECT_NE(item.source, "/home/u/.ssh");
  EXPECT_EQ(view_.notices.size(), 1U);
}

TEST_F(ViewTest, OwnPlacesCanBeWrittenWhateverTheLayersSay) {
  Build("", "[filesystem]\ndefault = \"hide\"\n");
  for (const char* path : {"/tmp/x", "/home/u/.cache/pip", "/dev/shm/x", "/var/tmp/y"}) {
    EXPECT_EQ(VerdictOn(view_.effective, path), policy::PathVerdict::kWrite) << path;
  }
  EXPECT_EQ(VerdictOn(view_.effective, "/home/u/.ssh/id"), policy::PathVerdict::kHide);
  EXPECT_EQ(VerdictOn(view_.effective, "/etc/x"), policy::PathVerdict::kHide);
}

TEST_F(ViewTest, RootsBindsAreMappedOnlyWhereFilesAreTheCallersOwn) {
  ids_ = IdShift{1'900'000'001, 1'900'000'001};
  Build();
  for (const walls::MountItem& item : view_.mounts) {
    if (item.kind != walls::MountKind::kBind) continue;
    const bool mapped = !item.id_map.uids.empty();
    EXPECT_EQ(mapped, item.target == "/home/u/proj") << item.target;
    if (mapped) EXPECT_EQ(item.id_map.uids.front(), (walls::IdRange{1000, 1'900'000'001, 1}));
  }
}

TEST_F(ViewTest, RefusesRulesThatItCannotKeep) {
  facts_.rules.push_back(File("/dev/kvm"));
  EXPECT_THAT(Build("[filesystem]\nread = [\"/dev/kvm\"]\n").front(),
              testing::HasSubstr("sandbox's own"));
}

TEST_F(ViewTest, EnterpriseShowsOnlyWhatIsListed) {
  facts_.root.clear();
  facts_.rules.push_back(Dir("/usr"));
  facts_.rules.push_back(Link("/bin", "/usr/bin"));
  facts_.rules.back().link_text = "usr/bin";
  const auto mounts = Build("profile = \"enterprise\"\n");
  EXPECT_THAT(mounts, IsSupersetOf({"ro /usr", "link /bin", "rw /home/u/proj"}));
  EXPECT_THAT(mounts, Not(Contains("ro /etc")));
}

TEST_F(ViewTest, GivesAPlanThatTheWallsAccept) {
  facts_.rules.push_back(Dir("/home/u/.ssh"));
  Build();
  walls::WallPlan plan;
  plan.namespaces = walls::Namespaces::kAll;
  plan.user_namespaces = {{{{1000, 1000, 1}}, {{1000, 1000, 1}}}};
  plan.uid = plan.gid = 1000;
  plan.network = walls::NetworkKind::kLoopback;
  plan.mounts = view_.mounts;
  plan.arguments = {"true"};
  const Status status = Validate(plan);
  EXPECT_TRUE(status) << status.error().message();
}

}  // namespace
}  // namespace soma::plan
