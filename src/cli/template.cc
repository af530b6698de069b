// SPDX-License-Identifier: Apache-2.0
// soma template build | import | list | show
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "image/machine_kernel.h"
#include "image/manifest.h"
#include "image/template_builder.h"
#include "sys/soma_paths.h"

namespace soma::cli {

namespace {

struct TemplateOptions {
  std::string name = "base";
  std::string directory;
  bool rebuild = false;
  bool unpack = false;
  bool without_kernel = false;
};

// The folder of the running program, and what is installed beside it.
Result<std::string> ProgramDirectory() {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) return std::unexpected(Error::FromErrno(errno, "readlink /proc/self/exe"));
  const std::string_view path(buffer.data(), static_cast<std::size_t>(size));
  return std::string(path.substr(0, path.rfind('/')));
}

Result<std::string> TemplateStore() {
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  return state + "/launcher/templates";
}

std::string ManifestLine(const image::Manifest& manifest) {
  return StrCat(manifest.name, "  ", manifest.id, "  ", manifest.erofs_bytes / 1'000'000, " MB  ",
                manifest.packages.size(), " packages  user ", manifest.default_user);
}

void Print(const Context& context, const image::Manifest& manifest) {
  PrintLine(context.json ? std::string(Trim(Split(image::WriteManifest(manifest), '\n').front()))
                         : ManifestLine(manifest));
}

Status RunBuild(const Context& context, const TemplateOptions& options) {
  SOMA_ASSIGN(const std::string programs, ProgramDirectory());
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  SOMA_ASSIGN(const std::string store, TemplateStore());
  const std::string share = programs + "/../share/soma";
  const std::string recipe = StrCat(share, "/templates/", options.name, "/recipe");
  if (!image::IsTemplateName(options.name) || access(recipe.c_str(), X_OK) != 0) {
    return Fail(Errc::kNotFound,
                StrCat("there is no recipe for a template ", options.name, " (", recipe, ")"));
  }
  SOMA_ASSIGN(
      const image::Built built,
      image::BuildTemplate({.name = options.name,
                            .templates = store,
                            .recipe = recipe,
                            .when_current = options.rebuild ? image::WhenCurrent::kRebuild
                                                            : image::WhenCurrent::kReuse,
                            .unpack = options.unpack ? image::Unpack::kYes : image::Unpack::kNo},
                           context.clock));
  if (!options.without_kernel) {
    SOMA_TRY_WHILE(image::InstallMachineKernel({.directory = state + "/launcher/kernel",
                                                .scripts = share + "/vm",
                                                .programs = programs}),
                   "installing the kernel of virtual machines");
  }
  if (!context.json)
    Complain(built.from_cache ? "the template is current; nothing was built"
                              : "the template was built");
  Print(context, built.manifest);
  return {};
}

Status RunImport(const Context& context, const TemplateOptions& options) {
  SOMA_ASSIGN(const std::string store, TemplateStore());
  // An ordinary user's launcher may not mount an image.
  const bool unpack = options.unpack || geteuid() != 0;
  SOMA_ASSIGN(const image::Manifest manifest,
              image::ImportTemplate(store, options.directory,
                                    unpack ? image::Unpack::kYes : image::Unpack::kNo));
  Print(context, manifest);
  return {};
}

Status RunList(const Context& context, const TemplateOptions&) {
  SOMA_ASSIGN(const std::string store, TemplateStore());
  SOMA_ASSIGN(const std::vector<image::Manifest> all, image::ListTemplates(store));
  for (const image::Manifest& manifest : all) Print(context, manifest);
  if (all.empty() && !context.json) Complain("there is no template yet: soma template build base");
  return {};
}

Status RunShow(const Context& context, const TemplateOptions& options) {
  SOMA_ASSIGN(const std::string store, TemplateStore());
  SOMA_ASSIGN(const image::Manifest manifest, image::FindTemplate(store, options.name));
  Print(context, manifest);
  if (context.json) return {};
  for (const std::string& package : manifest.packages) PrintLine(package);
  return {};
}

using Action = Status (*)(const Context&, const TemplateOptions&);

void Bind(CLI::App& command, Context& context, const std::shared_ptr<TemplateOptions>& options,
          Action action) {
  command.callback([&context, options, action] {
    if (const Status status = action(context, *options); !status) FailWith(context, status.error());
  });
}

}  // namespace

void AddTemplate(CLI::App& tools, Context& context) {
  CLI::App* group = AddCommand(tools, "template", "Root file systems that sandboxes start from",
                               "soma template build base");
  group->require_subcommand(1);
  const auto options = std::make_shared<TemplateOptions>();

  CLI::App* build =
      AddCommand(*group, "build", "Build a template from its recipe, or find that it is current",
                 "sudo soma template build base");
  build->add_option("name", options->name, "The recipe's name")->required();
  build->add_flag("--rebuild", options->rebuild, "Build even if nothing has changed");
  build->add_flag("--unpack", options->unpack,
                  "Add an unpacked tree, for launchers that may not mount an image");
  build->add_flag("--without-kernel", options->without_kernel,
                  "Leave the virtual machines' kernel as it is");
  Bind(*build, context, options, &RunBuild);

  CLI::App* import = AddCommand(*group, "import", "Take a template that another store has built",
                                "soma template import /srv/soma/base");
  import->add_option("directory", options->directory, "Holds root.erofs and manifest.json")
      ->required();
  import->add_flag("--unpack", options->unpack, "Add an unpacked tree (always for ordinary users)");
  Bind(*import, context, options, &RunImport);

  CLI::App* list = AddCommand(*group, "list", "Templates on this machine", "soma template list");
  Bind(*list, context, options, &RunList);

  CLI::App* show =
      AddCommand(*group, "show", "One template and its packages", "soma template show base");
  show->add_option("name", options->name, "A name or an id")->required();
  Bind(*show, context, options, &RunShow);
}

}  // namespace soma::cli
