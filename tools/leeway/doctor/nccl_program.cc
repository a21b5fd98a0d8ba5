#include "doctor/nccl_program.h"

#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace leeway::tools::doctor {
namespace {

constexpr const char* kSection = "NCCL";
constexpr std::string_view kLibrary = "libnccl.so";
constexpr std::string_view kFunction = "ncclCommInitRank";
// A text that every NCCL since 2.14 contains, even a stripped one. Programs that only call NCCL do
// not contain the text, so it shows that a file contains NCCL itself.
constexpr std::string_view kInside =
    "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER";

// Reads values in an ELF file. Never reads beyond the end of the file.
class Elf {
 public:
  explicit Elf(ByteSpan file) : file_(file) {}

  // Returns true if the file is an ELF file of 64 bits, least significant byte first.
  bool valid() const {
    const auto header = at<Elf64_Ehdr>(0);
    return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB;
  }

  template <typename T>
  std::optional<T> at(std::uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }

  // Returns the text that begins at the offset, or no text if it has no end.
  std::string_view text(std::uint64_t offset) const {
    if (offset >= file_.size()) return {};
    const auto* const begin = reinterpret_cast<const char*>(file_.data()) + offset;
    const void* const end = std::memchr(begin, 0, file_.size() - offset);
    if (end == nullptr) return {};
    return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
  }

  bool contains(std::string_view text) const {
    const std::string_view all(reinterpret_cast<const char*>(file_.data()), file_.size());
    return all.find(text) != std::string_view::npos;
  }

  // Calls `visit` with the header of each section until a call returns true. Returns true if one
  // did.
  template <typename Visit>
  bool any_section(const Visit& visit) const {
    const auto header = at<Elf64_Ehdr>(0);
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return false;
      if (visit(*section)) return true;
    }
    return false;
  }

  // Returns the offset of the table of names that `section`, which has symbols or dynamic entries,
  // refers to.
  std::uint64_t names_of(const Elf64_Shdr& section) const {
    const auto header = at<Elf64_Ehdr>(0);
    const auto names =
        at<Elf64_Shdr>(header->e_shoff + std::uint64_t{section.sh_link} * sizeof(Elf64_Shdr));
    return names ? names->sh_offset : file_.size();
  }

 private:
  ByteSpan file_;
};

bool needs_nccl(const Elf& elf) {
  return elf.any_section([&](const Elf64_Shdr& section) {
    if (section.sh_type != SHT_DYNAMIC) return false;
    for (std::uint64_t done = 0; done < section.sh_size; done += sizeof(Elf64_Dyn)) {
      const auto entry = elf.at<Elf64_Dyn>(section.sh_offset + done);
      if (!entry || entry->d_tag == DT_NULL) return false;
      if (entry->d_tag != DT_NEEDED) continue;
      if (elf.text(elf.names_of(section) + entry->d_un.d_val).starts_with(kLibrary)) return true;
    }
    return false;
  });
}

bool defines_nccl(const Elf& elf) {
  return elf.any_section([&](const Elf64_Shdr& section) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) return false;
    for (std::uint64_t done = 0; done < section.sh_size; done += sizeof(Elf64_Sym)) {
      const auto symbol = elf.at<Elf64_Sym>(section.sh_offset + done);
      if (!symbol) return false;
      if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
      if (elf.text(elf.names_of(section) + symbol->st_name) == kFunction) return true;
    }
    return false;
  });
}

std::vector<std::byte> contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.good() ? std::streamoff{file.tellg()} : 0;
  if (size <= 0) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

std::string output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool began =
      ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
    output.append(part.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  if (began) ::waitpid(child, nullptr, 0);
  return output;
}

// Returns the dynamic loader that the file names, or no text if it names none.
std::string loader_of(ByteSpan file) {
  const Elf elf(file);
  const auto header = elf.at<Elf64_Ehdr>(0);
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = elf.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (segment && segment->p_type == PT_INTERP) return std::string(elf.text(segment->p_offset));
  }
  return {};
}

// Returns the path at which the loader finds libnccl.so.2 for this program. Returns no text if
// neither the program nor its libraries need it.
std::string loaded_nccl(const std::string& path, ByteSpan file) {
  const std::string loader = loader_of(file);
  if (loader.empty()) return {};
  const std::string list = output_of({loader, "--list", path});
  const std::size_t at = list.find(kLibrary);
  if (at == std::string::npos) return {};
  std::string line = list.substr(at, list.find('\n', at) - at);
  const std::size_t arrow = line.find("=> ");
  if (arrow == std::string::npos) return line;
  return line.substr(arrow + 3, line.rfind(" (") - arrow - 3);
}

Finding finding_of(const std::string& path, NcclUse use, const std::string& loaded) {
  switch (use) {
    case NcclUse::needed:
      return {kSection, path, Verdict::ok, "has the loader look for it: " + loaded,
              "leeway nccl -- " + path};
    case NcclUse::opened:
      return {kSection, path, Verdict::ok,
              "opens it by itself: preloading works unless it gives a path",
              "leeway nccl -- " + path + "; vLLM's path is VLLM_NCCL_SO_PATH"};
    case NcclUse::linked_in:
      return {kSection, path, Verdict::warn, "has NCCL linked in: preloading cannot work",
              "link it with libnccl.so; or leave it its NCCL, over Leeway's network: leeway nccl "
              "--net -- " +
                  path};
    case NcclUse::none:
      break;
  }
  return {kSection, path, Verdict::info,
          "names no NCCL; what it loads later, as Python does, is not seen here",
          "leeway nccl -- " + path + " reaches all that look for libnccl.so.2 by its name"};
}

}  // namespace

Result<NcclUse> nccl_use_of(ByteSpan file) {
  const Elf elf(file);
  if (!elf.valid())
    return Status::error(StatusCode::kInvalidArgument, "no 64-bit ELF file of this byte order");
  if (needs_nccl(elf)) return NcclUse::needed;
  if (defines_nccl(elf) || elf.contains(kInside)) return NcclUse::linked_in;
  return elf.contains(kLibrary) ? NcclUse::opened : NcclUse::none;
}

void probe_nccl_program(const std::string& path, Findings& findings) {
  const std::vector<std::byte> file = contents_of(path);
  const auto use = nccl_use_of(file);
  if (!use.ok()) {
    const bool script = file.size() > 2 && file[0] == std::byte{'#'} && file[1] == std::byte{'!'};
    findings.push_back({kSection, path, script ? Verdict::info : Verdict::missing,
                        script ? "a script: what its interpreter loads decides"
                               : "cannot be read, or is no 64-bit ELF file",
                        script ? "leeway doctor INTERPRETER" : "name a program by its path"});
    return;
  }
  const std::string loaded = loaded_nccl(path, file);
  const bool needed = *use == NcclUse::needed || (*use != NcclUse::linked_in && !loaded.empty());
  findings.push_back(finding_of(path, needed ? NcclUse::needed : *use, loaded));
}

}  // namespace leeway::tools::doctor
