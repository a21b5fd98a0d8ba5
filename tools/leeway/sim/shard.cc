#include "sim/shard.h"

#include <algorithm>

#include "codec/text_table.h"
#include "sim/read_number.h"

namespace leeway::tools::simulation {
namespace {

constexpr std::uint32_t kShardsMax = 1'000'000;  // as many as there may be seeds

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
  return codecs::cell("shard %u of %u", shard.number, shard.of);
}

Result<std::string> launcher_shard(const rendezvous::EnvironmentGetter& get) {
  const Result<rendezvous::Launcher> launcher = rendezvous::detect_launcher(get);
  if (!launcher.ok()) return launcher.status();
  if (launcher->kind == rendezvous::LauncherKind::none || launcher->size == 1) return std::string();
  return codecs::cell("%d/%d", launcher->rank + 1, launcher->size);
}

}  // namespace leeway::tools::simulation
