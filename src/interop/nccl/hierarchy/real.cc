#include "interop/nccl/hierarchy/real.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

namespace leeway::nccl {
namespace {

constexpr const char* kLibrary = "/libnccl.so.2";
// Lies beside every libnccl.so.2 of Leeway's.
constexpr const char* kBesideOurs = "/libleeway_nccl.so.0";

// Bound to itself first: the library calls its own public functions, whose names are ours.
#ifdef LEEWAY_NCCL_DIRECT  // sanitizers refuse that
constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// The folder of the library that has this code.
std::string own_folder() {
  Dl_info self{};
  if (::dladdr(&leeway_nccl_functions_0, &self) == 0) return "";
  return folder_of(self.dli_fname);
}

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool is_there(const std::string& path) {
  return ::access(path.c_str(), R_OK) == 0;
}

void add_loader_path(std::vector<std::string>& folders) {
  const char* const value = std::getenv("LD_LIBRARY_PATH");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(":;"), rest.size());
    folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

int add_python_packages(dl_phdr_info* library, std::size_t, void* out) {
  const std::string_view path = library->dlpi_name;
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t found = path.find(packages);
    if (found == std::string_view::npos) continue;
    auto& folders = *static_cast<std::vector<std::string>*>(out);
    std::string folder(path.substr(0, found + packages.size()));
    folder += "nvidia/nccl/lib";
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  }
  return 0;
}

Status unusable(const std::string& path, const std::string& why) {
  return Status::error(StatusCode::kUnavailable, "%.200s: %.200s", path.c_str(), why.c_str());
}

// What the hierarchy calls in any case.
bool is_complete(const leeway_nccl_functions& call) {
  return call.GetVersion != nullptr && call.GetUniqueId != nullptr &&
         call.GetLastError != nullptr && call.CommInitRankConfig != nullptr &&
         call.CommFinalize != nullptr && call.CommDestroy != nullptr && call.CommAbort != nullptr &&
         call.CommGetAsyncError != nullptr && call.AllReduce != nullptr &&
         call.ReduceScatter != nullptr && call.AllGather != nullptr && call.Reduce != nullptr &&
         call.Broadcast != nullptr && call.Send != nullptr && call.Recv != nullptr &&
         call.GroupStart != nullptr && call.GroupEnd != nullptr &&
         call.RedOpCreatePreMulSum != nullptr && call.RedOpDestroy != nullptr;
}

}  // namespace

std::vector<std::string> real_nccl_places() {
  std::vector<std::string> folders;
  add_loader_path(folders);
  ::dl_iterate_phdr(&add_python_packages, &folders);
  for (const char* const folder :
       {"/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib"})
    folders.emplace_back(folder);
  std::vector<std::string> places;
  for (const std::string& folder : folders) {
    if (is_there(folder + kLibrary) && !is_there(folder + kBesideOurs))
      places.push_back(folder + kLibrary);
  }
  return places;
}

Result<const RealNccl*> RealNccl::load(const std::string& path) {
  if (is_same_file(path, own_folder() + kLibrary)) return unusable(path, "is this library itself");
  void* const handle = ::dlopen(path.c_str(), kMode);
  if (handle == nullptr) return unusable(path, ::dlerror());
  leeway_nccl_functions functions{};
#define LEEWAY_NCCL_FIND(name, parameters, arguments) \
  functions.name = reinterpret_cast<decltype(functions.name)>(::dlsym(handle, "nccl" #name));
#define LEEWAY_NCCL_FIND_OTHER(type, name, parameters, arguments, failed) \
  LEEWAY_NCCL_FIND(name, parameters, arguments)
  LEEWAY_NCCL_FUNCTIONS(LEEWAY_NCCL_FIND, LEEWAY_NCCL_FIND_OTHER)
#undef LEEWAY_NCCL_FIND
#undef LEEWAY_NCCL_FIND_OTHER
  if (!is_complete(functions)) return unusable(path, "is no NCCL of 2.18 or newer");
  int version = 0;
  if (functions.GetVersion(&version) != 0 || version <= 0)
    return unusable(path, "does not tell its version");
  return static_cast<const RealNccl*>(new RealNccl(functions, path, version));
}

Result<const RealNccl*> RealNccl::open(const std::string& asked) {
  if (asked == "none") return Status::error(StatusCode::kUnavailable, "LEEWAY_NCCL_REAL=none");
  if (!asked.empty()) return load(asked);
  Status why = Status::error(StatusCode::kUnavailable, "no libnccl.so.2 but Leeway's was found");
  for (const std::string& place : real_nccl_places()) {
    auto opened = load(place);
    if (opened.ok()) return opened;
    why = opened.status();
  }
  return why;
}

}  // namespace leeway::nccl
