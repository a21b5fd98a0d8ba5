#include "codec/settings.h"

#include <algorithm>

#include "codec/catalog.h"
#include "codec/error_meter.h"
#include "leeway/types.h"
#include "perf/sweep.h"

namespace leeway::tools::codecs {
namespace {

constexpr std::size_t kBytesMin = kPacketElements * sizeof(float);
constexpr std::size_t kBytesMax = std::size_t{4} << 30;

Result<std::vector<CodecOptions>> parse_codecs(const std::vector<std::string>& texts) {
  std::vector<CodecOptions> codecs;
  for (const std::string& text : texts) {
    const auto options = parse_codec(text);
    if (!options.ok()) return options.status();
    if (options->codec == Codec::automatic || options->codec == Codec::native) {
      return Status::error(StatusCode::kInvalidArgument,
                           "%s is no format of its own; leeway codec list shows those there are",
                           text.c_str());
    }
    codecs.push_back(*options);
  }
  return codecs;
}

// Returns the formats that are measured by default, each with its default settings, because other
// settings change the speed little.
std::vector<std::string> plain_formats() {
  std::vector<std::string> texts;
  for (const CatalogEntry& entry : catalog()) {
    const std::string text = entry.text;
    const bool is_copy = text == "fp32";  // memcpy, which is measured beside every row anyway
    if (!is_copy && (text.find(':') == std::string::npos || text == "sparse:2/4"))
      texts.push_back(text);
  }
  return texts;
}

}  // namespace

Result<BenchSettings> understand(const BenchArguments& arguments) {
  const auto codecs = parse_codecs(arguments.codecs.empty() ? plain_formats() : arguments.codecs);
  if (!codecs.ok()) return codecs.status();
  BenchSettings settings;
  settings.codecs = *codecs;
  settings.all_targets = arguments.all_targets;
  settings.json_path = arguments.json_path;
  for (const std::string& text : arguments.sizes) {
    const auto bytes = perf::parse_bytes(text);
    if (!bytes.ok()) return bytes.status();
    if (*bytes < kBytesMin || *bytes > kBytesMax) {
      return Status::error(StatusCode::kInvalidArgument,
                           "--bytes takes sizes from 8K to 4G, not %s", text.c_str());
    }
    settings.sizes.push_back(*bytes);
  }
  std::sort(settings.sizes.begin(), settings.sizes.end());
  return settings;
}

Result<InspectOptions> understand(const InspectArguments& arguments) {
  for (const double sparsity : arguments.sparsities) {
    if (sparsity > 0.0 && sparsity < 1.0) continue;
    return Status::error(StatusCode::kInvalidArgument,
                         "--sparsity is a fraction between 0 and 1, not %g", sparsity);
  }
  if (arguments.ranks < 1 || arguments.ranks > kNoRank) {
    return Status::error(StatusCode::kInvalidArgument, "--ranks must lie in 1 .. %d", kNoRank);
  }
  return InspectOptions{arguments.sparsities, static_cast<std::uint32_t>(arguments.ranks)};
}

}  // namespace leeway::tools::codecs
