#include "train/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "train/corpus.h"

namespace leeway::tools::train {
namespace {

constexpr std::size_t kWindowsPerPass = 16;  // bounds the memory of a forward pass

}  // namespace

std::vector<std::size_t> validation_starts(std::size_t tokens, std::size_t window, int rank,
                                           int ranks) {
  const std::size_t windows = std::min(kValidationWindowsMax, tokens / window);
  std::vector<std::size_t> starts;
  for (auto i = static_cast<std::size_t>(rank); i < windows; i += static_cast<std::size_t>(ranks)) {
    starts.push_back(i * (tokens / windows));
  }
  return starts;
}

double perplexity(double nats_sum, double windows) {
  return std::exp(nats_sum / windows);
}

Result<double> validation_perplexity(Communicator& communicator, Gpt& model,
                                     std::span<const std::uint8_t> tokens, std::size_t window) {
  const auto starts =
      validation_starts(tokens.size(), window, communicator.rank(), communicator.size());
  std::array<double, 2> sums{0.0, static_cast<double>(starts.size())};
  std::vector<std::int64_t> windows;
  for (std::size_t first = 0; first < starts.size(); first += kWindowsPerPass) {
    const std::size_t count = std::min(kWindowsPerPass, starts.size() - first);
    windows.clear();
    for (std::size_t i = 0; i < count; ++i)
      append_window(tokens, starts[first + i], window, windows);
    sums[0] += model.mean_loss(windows) * static_cast<double>(count);
  }
  const auto added = communicator.all_reduce(TensorView(std::span(sums)));
  if (!added.ok()) return added.status();
  return perplexity(sums[0], sums[1]);
}

}  // namespace leeway::tools::train
