// Output in nccl-tests' format (src/util.cu of release 2.19.6), byte for byte in its 13 columns, so
// that parsers of nccl-tests read it unchanged. Leeway's own columns follow: loss% nmse late% p50
// p99.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "perf/spending.h"

namespace leeway::tools::perf {

// One of the two halves of a row. Bandwidth is bytes / time_us in GB/s, GB = 1e9.
struct Side {
  double time_us = 0;  // mean over iterations of the slowest rank's time
  double p50_us = 0;
  double p99_us = 0;
  double algbw_GBps = 0;
  double busbw_GBps = 0;
  // elements with wrong bits; no value if an inexact result was asked for (exactness.h)
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
  // Timed iterations of both sides, fractions of the packets expected:
  double loss = 0;             // lost by the network, so on the first pass
  double loss_residual = 0;    // still missing after repair
  double late = 0;             // arrived too late to be used
  std::string_view transport;  // transport of the calls
  std::string codec_used;      // codec that `automatic` chose
  // Rms of the true reduction over rms of the noise, both averaged over iterations and ranks; no
  // value without noise. The ranks' test data are independent and centred, so all of it is
  // dispersion.
  std::optional<double> gradient_to_noise;
  std::optional<Spending> spending;  // costs of a call over all ranks; only for calls back to back
};

// The three lines above the rows, each with a line feed.
std::string format_header();
std::string format_row(const Row& row);
// A comment below a row.
std::string format_spending(const Spending& spending);
// `rows_wrong` counts the halves of rows with wrong elements, as nccl-tests does.
std::string format_footer(int rows_wrong, double bandwidth_mean, std::string_view operation);

// Works like nccl-tests' getFloatStr: two, one or no decimals, as many as fit into `width`, else an
// exponent.
std::string format_float(double value, int width);

}  // namespace leeway::tools::perf
