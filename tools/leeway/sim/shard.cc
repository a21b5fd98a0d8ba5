#include "sim/shard.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>

#include "base/read_number.h"
#include "format.h"

namespace leeway::tools::simulation {
namespace {

constexpr std::uint32_t kShardsMax = 1'000'000;  // the limit on seeds

}  // namespace

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  if (text.empty()) return shard;
  const std::size_t slash = text.find('/');
  const bool read = slash != std::string_view::npos &&
                    read_number(text.substr(0, slash), shard.number) &&
                    read_number(text.substr(slash + 1), shard.of);
  const bool fits = read && shard.number >= 1 && shard.number <= shard.of && shard.of <= kShardsMax;
  if (fits) return shard;
  return Status::error(StatusCode::kInvalidArgument,
                       "--shard %.*s: write I/N for part I of N, from 1/N to N/N",
                       static_cast<int>(std::min<std::size_t>(text.size(), 60)), text.data());
}

std::string to_string(const Shard& shard) {
  return format("shard %u of %u", shard.number, shard.of);
}

Result<std::string> launcher_shard(const rendezvous::EnvironmentGetter& get) {
  const Result<rendezvous::Launcher> launcher = rendezvous::detect_launcher(get);
  if (!launcher.ok()) return launcher.status();
  if (launcher->kind == rendezvous::LauncherKind::none || launcher->size == 1) return std::string();
  return format("%d/%d", launcher->rank + 1, launcher->size);
}

void add_shard_option(CLI::App& command, std::string& shard) {
  command.add_option("--shard", shard,
                     "I/N: part I of N, for one of N machines; under a launcher its rank says "
                     "which. `leeway sim merge` joins the parts");
}

Status default_to_launcher(std::string& shard) {
  if (!shard.empty()) return {};
  const Result<std::string> launcher = launcher_shard(rendezvous::process_environment());
  if (!launcher.ok()) return launcher.status();
  shard = *launcher;
  if (!shard.empty()) std::fprintf(stderr, "--shard %s, by the launcher\n", shard.c_str());
  return {};
}

}  // namespace leeway::tools::simulation
