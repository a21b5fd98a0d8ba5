// Output in nccl-tests' format (src/util.cu of release 2.19.6). Its 13 columns are the same byte
// for byte, so that parsers of nccl-tests read them unchanged. Leeway's own columns follow: loss%
// nmse late% p50 p99.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "perf/spending.h"

namespace leeway::tools::perf {

// One half of a row: out of place or in place. Bandwidth is bytes / time_us in GB/s, GB = 1e9.
struct Side {
  double time_us = 0;  // mean over iterations of the slowest rank's time
  double p50_us = 0;
  double p99_us = 0;
  double algbw_GBps = 0;
  double busbw_GBps = 0;
  // Number of elements that differ from the exact result. It has no value if results need not be
  // exact (exactness.h).
  std::optional<double> wrong;
  double nmse = 0;  // sum of squared errors / sum of squared truth, over all ranks and checks
};

struct Row {
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::string_view type;
  std::string_view redop;  // "none" for operations that do not reduce
  int root = -1;
  Side out_of_place;
  std::optional<Side> in_place;  // no value if the operation cannot overwrite its input
  // The following are fractions of the expected packets, over the timed iterations of both halves.
  double loss = 0;             // lost by the network, so on the first pass
  double loss_residual = 0;    // still missing after repair
  double late = 0;             // arrived too late to be used
  std::string_view transport;  // transport of the calls
  std::string codec_used;      // codec that `automatic` chose
  // RMS of the true reduction over RMS of the noise, both averaged over iterations and ranks. There
  // is no value without noise. Test data of different ranks are independent with mean 0, so the
  // true reduction itself counts as dispersion.
  std::optional<double> gradient_to_noise;
  std::optional<Spending> spending;  // costs of a call over all ranks; only for calls back to back
};

// Returns the three lines above the rows, each with a line feed.
std::string format_header();
std::string format_row(const Row& row);
// Returns a comment line, to be printed below its row.
std::string format_spending(const Spending& spending);
// `rows_wrong` counts the halves of rows with wrong elements, as nccl-tests does.
std::string format_footer(int rows_wrong, double bandwidth_mean, std::string_view operation);

// Formats a number like nccl-tests' getFloatStr: with as many decimals (at most two) as fit into
// `width`, or with an exponent.
std::string format_float(double value, int width);

}  // namespace leeway::tools::perf
