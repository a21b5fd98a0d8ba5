// Checks that the kernel's netem loses packets as the simulator's links do (simulator/link). For
// each case, reads which packets of a long sequence netem lost. Compares the sequence's loss ratio,
// autocorrelation and burst lengths with theory (support/loss_theory.h), and with the simulator's
// model for the same parameters. tools/dev/netem_parity makes the sequences and runs this program.
//
//   netem_parity --cases            one case a line: name, then the words after `netem` of tc
//   netem_parity PACKETS FILE       FILE: PACKETS / 8 bytes a case, a bit a packet, 1: lost
//
// Exit status 1 if a figure is more than kSigmasMax standard errors off. Standard errors come from
// the scatter between kBlocks blocks of the sequence, which are much longer than any correlation.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "link/loss_model.h"
#include "support/loss_theory.h"

namespace leeway::sim {
namespace {

constexpr std::size_t kBlocks = 100;
constexpr std::size_t kForgotten = 1000;  // packets after which the start no longer matters
constexpr std::array<std::size_t, 6> kLags = {1, 2, 3, 5, 10, 30};
constexpr std::size_t kLengths = 12;  // bursts of 1 to 12 packets are counted
// Least number of events that a figure is based on; with fewer, it is not normally distributed.
constexpr double kCountMin = 100;
// The simulation has this many times netem's packets, so that its error is small.
constexpr std::uint64_t kSimulated = 10;
constexpr double kSigmasMax = 4;  // some 200 comparisons: about two false alarms in 100 runs

struct Case {
  const char* name;
  const char* netem;  // netem's arguments for tc, in percent
  LossOptions options;
  std::optional<LossChain> chain;  // nullopt if there is no closed form
};

template <typename Options>
Case chain_case(const char* name, const char* netem, const Options& options) {
  return {name, netem, options, chain_of(options)};
}

// The case "none" is a control: the probe itself must not lose anything.
std::vector<Case> cases() {
  return {
      {"none", "limit 1000", NoLoss{}, {}},
      chain_case("random_1%", "loss random 1%", RandomLoss{0.01}),
      chain_case("random_30%", "loss random 30%", RandomLoss{0.3}),
      {"correlated", "loss random 25% 50%", RandomLoss{0.25, 0.5}, {}},
      chain_case("simple_gilbert", "loss gemodel 1% 30% 100% 0%", GilbertElliott{0.01, 0.3, 1, 0}),
      chain_case("gilbert", "loss gemodel 2% 10% 70% 0%", GilbertElliott{0.02, 0.1, 0.7, 0}),
      chain_case("gilbert_elliott", "loss gemodel 1% 20% 80% 2%",
                 GilbertElliott{0.01, 0.2, 0.8, 0.02}),
      chain_case("four_state", "loss state 1% 10% 20% 40% 2%",
                 FourState{0.01, 0.1, 0.2, 0.4, 0.02}),
  };
}

using Fates = std::vector<std::uint8_t>;  // 1: lost

Fates simulate(const Case& tested, std::size_t packets) {
  LossModel model = LossModel::make({&tested.options, 1}, 1, 0).value();
  Fates fates(packets);
  for (std::uint8_t& fate : fates) fate = model.lost(0, 1) ? 1 : 0;
  return fates;
}

struct Mean {
  double value = 0;
  double error = 0;  // standard error
};

Mean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  double squares = 0;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return {sum / n, std::sqrt(squares / (n - 1) / n)};
}

using Block = std::span<const std::uint8_t>;

// Returns the mean of `figure` over the blocks. Leaves out the first kForgotten packets.
template <typename Figure>
Mean over_blocks(const Fates& fates, Figure figure) {
  const Block whole = Block(fates).subspan(kForgotten);
  const std::size_t size = whole.size() / kBlocks;
  std::vector<double> values;
  for (std::size_t i = 0; i < kBlocks; ++i) values.push_back(figure(whole.subspan(i * size, size)));
  return mean_of(values);
}

double ratio(Block block) {
  std::size_t lost = 0;
  for (const std::uint8_t fate : block) lost += fate;
  return static_cast<double>(lost) / static_cast<double>(block.size());
}

// Returns the autocorrelation of losses in a block. `ratio` is the loss ratio of the whole
// sequence; with the block's own the result would be biased.
double correlation(Block block, std::size_t lag, double ratio) {
  double sum = 0;
  for (std::size_t i = lag; i < block.size(); ++i) {
    sum += (block[i] - ratio) * (block[i - lag] - ratio);
  }
  return sum / static_cast<double>(block.size() - lag) / (ratio * (1 - ratio));
}

// Number of all loss bursts that begin and end within a block, and of those bursts among them that
// have a given length.
struct Bursts {
  double all = 0;
  double of_length = 0;
};

Bursts count_bursts(Block block, std::size_t length) {
  Bursts bursts;
  std::size_t run = 0;
  bool began_inside = false;
  for (const std::uint8_t fate : block) {
    if (fate != 0) {
      ++run;
      continue;
    }
    bursts.all += began_inside && run > 0;
    bursts.of_length += began_inside && run == length;
    began_inside = true;
    run = 0;
  }
  return bursts;
}

class Comparison {
 public:
  void add(const char* what, std::size_t of, Mean netem, std::optional<double> theory,
           Mean simulator) {
    const std::string of_text = of > 0 ? std::to_string(of) : "";
    std::printf("  %-16s %3s %12.6f", what, of_text.c_str(), netem.value);
    if (theory) {
      std::printf(" %12.6f %6.2f", *theory, count(netem.value - *theory, netem.error));
    } else {
      std::printf(" %12s %6s", "-", "-");
    }
    const double error = std::hypot(netem.error, simulator.error);
    std::printf(" %12.6f %6.2f\n", simulator.value, count(netem.value - simulator.value, error));
  }

  bool conclude() const {
    std::printf(
        "%d comparisons, %d of them more than 3 standard errors off (chance: %.1f), the "
        "worst %.2f; allowed %.0f\n",
        comparisons_, beyond_3_, 0.0027 * comparisons_, worst_, kSigmasMax);
    return worst_ <= kSigmasMax;
  }

 private:
  double count(double difference, double error) {
    const double sigmas = difference == 0 ? 0 : difference / error;
    ++comparisons_;
    beyond_3_ += std::abs(sigmas) > 3;
    worst_ = std::max(worst_, std::abs(sigmas));
    return sigmas;
  }

  int comparisons_ = 0;
  int beyond_3_ = 0;
  double worst_ = 0;
};

void compare_ratio(const Case& tested, const Fates& netem, const Fates& simulated,
                   Comparison& comparison) {
  std::optional<double> theory;
  if (tested.chain) theory = loss_rate(*tested.chain);
  comparison.add("ratio", 0, over_blocks(netem, ratio), theory, over_blocks(simulated, ratio));
}

void compare_correlations(const Case& tested, const Fates& netem, const Fates& simulated,
                          Comparison& comparison) {
  const double center = tested.chain ? loss_rate(*tested.chain) : ratio(simulated);
  for (const std::size_t lag : kLags) {
    const auto figure = [&](Block block) { return correlation(block, lag, center); };
    const Mean simulator = over_blocks(simulated, figure);
    const double both_lost = center * center + center * (1 - center) * simulator.value;
    if (both_lost * static_cast<double>(netem.size()) < kCountMin) continue;
    std::optional<double> theory;
    if (tested.chain) theory = autocorrelation(*tested.chain, lag);
    comparison.add("autocorrelation", lag, over_blocks(netem, figure), theory, simulator);
  }
}

void compare_bursts(const Case& tested, const Fates& netem, const Fates& simulated,
                    Comparison& comparison) {
  for (std::size_t length = 1; length <= kLengths; ++length) {
    const auto share_of_length = [&](Block block) {
      const Bursts bursts = count_bursts(block, length);
      return bursts.all > 0 ? bursts.of_length / bursts.all : 0;
    };
    const Mean simulator = over_blocks(simulated, share_of_length);
    const double bursts = count_bursts(netem, length).all;
    if (bursts * std::min(simulator.value, 1 - simulator.value) < kCountMin) continue;
    std::optional<double> theory;
    if (tested.chain) theory = burst_probability(*tested.chain, length);
    comparison.add("burst of", length, over_blocks(netem, share_of_length), theory, simulator);
  }
}

void compare(const Case& tested, const Fates& netem, Comparison& comparison) {
  std::printf("%s: netem %s, %zu packets\n  %20s %12s %12s %6s %12s %6s\n", tested.name,
              tested.netem, netem.size(), "", "netem", "theory", "sigmas", "simulator", "sigmas");
  const Fates simulated = simulate(tested, netem.size() * kSimulated);
  compare_ratio(tested, netem, simulated, comparison);
  compare_correlations(tested, netem, simulated, comparison);
  compare_bursts(tested, netem, simulated, comparison);
}

// Returns the fates of each case's packets, or nothing if the file has another length.
std::vector<Fates> read_fates(const char* path, std::size_t packets, std::size_t count) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() != packets / 8 * count) return {};
  std::vector<Fates> all(count, Fates(packets));
  for (std::size_t i = 0; i < count; ++i) {
    const char* const first = bytes.data() + i * (packets / 8);
    for (std::size_t k = 0; k < packets; ++k) all[i][k] = first[k / 8] >> k % 8 & 1;
  }
  return all;
}

int run(std::size_t packets, const char* path) {
  const std::vector<Case> tested = cases();
  const std::vector<Fates> fates = read_fates(path, packets, tested.size());
  if (fates.empty()) {
    std::fprintf(stderr, "error: %s does not hold %zu packets for each of %zu cases\n", path,
                 packets, tested.size());
    return 1;
  }
  if (ratio(fates[0]) > 0) {
    std::fprintf(stderr, "error: %g of the packets were lost without a loss model\n",
                 ratio(fates[0]));
    return 1;
  }
  Comparison comparison;
  for (std::size_t i = 1; i < tested.size(); ++i) compare(tested[i], fates[i], comparison);
  return comparison.conclude() ? 0 : 1;
}

}  // namespace
}  // namespace leeway::sim

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--cases") {
    for (const auto& tested : leeway::sim::cases()) {
      std::printf("%s %s\n", tested.name, tested.netem);
    }
    return 0;
  }
  const std::size_t packets = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (packets % 8 != 0 || packets < 100'000) {
    std::fprintf(stderr,
                 "usage: netem_parity --cases | PACKETS FILE (a multiple of 8, at least "
                 "100000)\n");
    return 2;
  }
  return leeway::sim::run(packets, argv[2]);
}
