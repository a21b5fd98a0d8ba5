// leeway nccl: starts a program of NCCL with Leeway's libnccl.so.2 in front of NVIDIA's, or with
// NVIDIA's library and Leeway's network plugin in it.

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "exit_code.h"

namespace leeway::tools {
namespace {

// Exit codes like those of env(1) and nice(1).
constexpr int kExitNotStarted = 126;
constexpr int kExitNotFound = 127;

struct Arguments {
  std::string policy;
  std::string trace;
  bool print = false;
  bool net = false;
  std::vector<std::string> program;
};

std::string own_folder() {
  std::array<char, PATH_MAX> self{};
  const ssize_t size = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  const std::string own(self.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return own.substr(0, own.rfind('/') + 1);
}

// Returns the path of libnccl.so.2. LEEWAY_NCCL_FOLDERS ("a:b") lists folders to search, relative
// to this command's folder.
std::string library() {
  const std::string folder = own_folder();
  std::string_view places = LEEWAY_NCCL_FOLDERS;
  while (!places.empty()) {
    const std::size_t end = std::min(places.find(':'), places.size());
    const std::string path = folder + std::string(places.substr(0, end)) + "/libnccl.so.2";
    std::array<char, PATH_MAX> real{};
    if (::realpath(path.c_str(), real.data()) != nullptr) return real.data();
    places.remove_prefix(std::min(places.size(), end + 1));
  }
  return {};
}

// Returns the network plugin's path. The plugin lies two folders above the file `stub`
// (libnccl.so.2), both in the build tree and when installed.
std::string plugin(const std::string& stub) {
  std::array<char, PATH_MAX> real{};
  const std::string path = stub.substr(0, stub.rfind('/') + 1) + "../../libnccl-net-leeway.so";
  return ::realpath(path.c_str(), real.data()) == nullptr ? std::string() : real.data();
}

// Prints that the library is missing, and how to build it if this is a build tree.
void say_missing(bool net) {
  std::array<char, PATH_MAX> tree{};
  const std::string cache = own_folder() + "../CMakeCache.txt";
  if (::realpath((own_folder() + "..").c_str(), tree.data()) == nullptr ||
      ::access(cache.c_str(), F_OK) != 0) {
    std::fprintf(stderr,
                 "error: Leeway's libraries for NCCL are not installed with this command; on "
                 "Debian: apt-get install leeway-nccl\n");
    return;
  }
  std::fprintf(stderr,
               "error: Leeway's libraries for NCCL are not built in %s; cmake --build %s --target "
               "leeway_nccl_stub%s\n",
               tree.data(), tree.data(), net ? " leeway_nccl_net" : "");
}

int start(const Arguments& arguments) {
  const std::string stub = library();
  const std::string file = arguments.net && !stub.empty() ? plugin(stub) : stub;
  if (file.empty()) {
    say_missing(arguments.net);
    return kExitFailed;
  }
  if (arguments.print) {
    std::printf("%s\n", file.c_str());
    return 0;
  }
  if (arguments.program.empty()) {
    std::fprintf(stderr, "error: which program? leeway nccl -- PROGRAM ARGUMENTS\n");
    return kExitUsage;
  }
  if (arguments.net) {
    ::setenv("NCCL_NET_PLUGIN", file.c_str(), 1);
    // With NCCL_NET, NCCL fails if it cannot load the plugin. Without NCCL_NET it would then use
    // its own network, and nobody would notice.
    ::setenv("NCCL_NET", "Leeway", 1);
  } else {
    const char* const others = std::getenv("LD_PRELOAD");
    const bool any = others != nullptr && *others != '\0';
    ::setenv("LD_PRELOAD", (any ? file + ":" + others : file).c_str(), 1);
  }
  if (!arguments.policy.empty()) ::setenv("LEEWAY_NCCL_POLICY", arguments.policy.c_str(), 1);
  if (!arguments.trace.empty()) ::setenv("LEEWAY_NCCL_TRACE", arguments.trace.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : arguments.program)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int why = errno;
  std::fprintf(stderr, "error: %s: %s\n", words[0], std::strerror(why));
  return why == ENOENT ? kExitNotFound : kExitNotStarted;
}

}  // namespace

void register_nccl(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "nccl", "Start a program of NCCL on Leeway: leeway nccl -- torchrun train.py");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--policy", arguments->policy,
                      "What may be lossy: rules, or a file of them (LEEWAY_NCCL_POLICY)");
  command->add_option("--trace", arguments->trace,
                      "A file for a line of JSON for each operation (LEEWAY_NCCL_TRACE)");
  command->add_flag("--net", arguments->net,
                    "Leave the program NVIDIA's NCCL, and be its network (NCCL_NET_PLUGIN)");
  command->add_flag("--print", arguments->print, "Only print where the library lies");
  command->add_option("program", arguments->program, "The program and its arguments, behind --");
  command->footer(
      "The program finds Leeway's libnccl.so.2 before any other, and so do all that it starts.\n"
      "`leeway doctor PROGRAM` says whether a program can be reached so.");
  command->callback([arguments, &exit_code] { exit_code = start(*arguments); });
}

}  // namespace leeway::tools
