// SPDX-License-Identifier: Apache-2.0
// house-tidy COMPILE_COMMANDS_DIR FILE...: clang-tidy's own checks with clang-tidy's own
// configuration (.clang-tidy, NOLINT), but looked for only in what this repository declares.
//
// clang-tidy 19 visits every declaration of every included header, only to throw the findings in
// system headers away: half a minute for a file that includes Boost.Asio, seconds for any other.
// Here the traversal begins at our own declarations. Findings go to standard output; the exit
// status is 1 when there is any.
#include <clang-tidy/ClangTidy.h>
#include <clang-tidy/ClangTidyDiagnosticConsumer.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyOptions.h>
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclBase.h>
#include <clang/AST/DeclGroup.h>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticIDs.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/SourceLocation.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Basic/Specifiers.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <clang/Tooling/CompilationDatabase.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/ADT/IntrusiveRefCntPtr.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Casting.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace clang::tidy {
// Naming a module's anchor is how a program asks the linker for its checks.
// NOLINTBEGIN(readability-identifier-naming): the names are clang-tidy's.
extern volatile int AndroidModuleAnchorSource;
extern volatile int BugproneModuleAnchorSource;
extern volatile int CppCoreGuidelinesModuleAnchorSource;
extern volatile int MiscModuleAnchorSource;
extern volatile int ReadabilityModuleAnchorSource;
// NOLINTEND(readability-identifier-naming)
}  // namespace clang::tidy

namespace {

namespace tidy = clang::tidy;
using FileSystem = llvm::IntrusiveRefCntPtr<llvm::vfs::OverlayFileSystem>;

int Modules() {
  return tidy::AndroidModuleAnchorSource + tidy::BugproneModuleAnchorSource +
         tidy::CppCoreGuidelinesModuleAnchorSource + tidy::MiscModuleAnchorSource +
         tidy::ReadabilityModuleAnchorSource;
}

// Remembers our top-level declarations and, at the end of the file, names them as all there is to
// traverse. Stands before clang-tidy's consumer, which then traverses.
class Scope : public clang::ASTConsumer {
 public:
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    for (clang::Decl* declaration : group) {
      if (!IsInstantiation(*declaration) && IsOurs(*declaration)) {
        ours_.push_back(declaration);
      }
    }
    return true;
  }

  void HandleTranslationUnit(clang::ASTContext& context) override {
    context.setTraversalScope(ours_);
  }

 private:
  // An instantiation is visited below its template.
  static bool IsInstantiation(const clang::Decl& declaration) {
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&declaration);
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&declaration);
    return (function != nullptr && function->isTemplateInstantiation()) ||
           (variable != nullptr &&
            clang::isTemplateInstantiation(variable->getTemplateSpecializationKind()));
  }

  static bool IsOurs(const clang::Decl& declaration) {
    const clang::SourceManager& sources = declaration.getASTContext().getSourceManager();
    const clang::SourceLocation place = sources.getExpansionLoc(declaration.getLocation());
    return place.isValid() && !sources.isInSystemHeader(place);
  }

  std::vector<clang::Decl*> ours_;
};

class Action : public clang::ASTFrontendAction {
 public:
  explicit Action(tidy::ClangTidyASTConsumerFactory& factory) : factory_(factory) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(std::make_unique<Scope>());
    consumers.push_back(factory_.createASTConsumer(compiler, file));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

 private:
  tidy::ClangTidyASTConsumerFactory& factory_;
};

class ActionFactory : public clang::tooling::FrontendActionFactory {
 public:
  ActionFactory(tidy::ClangTidyContext& context, FileSystem files)
      : factory_(context, std::move(files)) {}

  std::unique_ptr<clang::FrontendAction> create() override {
    return std::make_unique<Action>(factory_);
  }

 private:
  tidy::ClangTidyASTConsumerFactory factory_;
};

// As `clang-tidy --quiet -p DIR FILE...`.
bool Check(const clang::tooling::CompilationDatabase& commands,
           const std::vector<std::string>& sources) {
  const FileSystem files(new llvm::vfs::OverlayFileSystem(llvm::vfs::getRealFileSystem()));
  tidy::ClangTidyContext context(std::make_unique<tidy::FileOptionsProvider>(
      tidy::ClangTidyGlobalOptions(), tidy::ClangTidyOptions::getDefaults(),
      tidy::ClangTidyOptions(), files));
  tidy::ClangTidyDiagnosticConsumer consumer(context);
  clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs(), new clang::DiagnosticOptions(),
                                       &consumer, /*ShouldOwnClient=*/false);
  context.setDiagnosticsEngine(&diagnostics);
  clang::tooling::ClangTool tool(commands, sources,
                                 std::make_shared<clang::PCHContainerOperations>(), files);
  tool.setDiagnosticConsumer(&consumer);
  ActionFactory actions(context, files);
  const bool compiled = tool.run(&actions) == 0;
  const std::vector<tidy::ClangTidyError> findings = consumer.take();
  unsigned errors = 0;
  tidy::handleErrors(findings, context, tidy::FB_NoFix, errors, files);
  return compiled && findings.empty();
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kUsage = 2;
  if (argc < 3) {
    llvm::errs() << "usage: house-tidy COMPILE_COMMANDS_DIR FILE...\n";
    return kUsage;
  }
  (void)Modules();
  std::string error;
  const auto commands = clang::tooling::CompilationDatabase::loadFromDirectory(argv[1], error);
  if (commands == nullptr) {
    llvm::errs() << "house-tidy: " << error << '\n';
    return kUsage;
  }
  return Check(*commands, {argv + 2, argv + argc}) ? 0 : 1;
}
