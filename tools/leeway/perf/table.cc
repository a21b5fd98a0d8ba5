#include "perf/table.h"

#include <algorithm>

#include "format.h"

namespace leeway::tools::perf {
namespace {

constexpr const char* kUnchecked =
    "    N/A";  // one character narrower than a number, as in nccl-tests

std::string format_side(const Side& side) {
  const std::string wrong = side.wrong ? format("  %6g", *side.wrong) : kUnchecked;
  return format("  %7s  %6s  %6s%s", format_float(side.time_us, 7).c_str(),
                format_float(side.algbw_GBps, 6).c_str(), format_float(side.busbw_GBps, 6).c_str(),
                wrong.c_str());
}

std::string format_absent_side() {
  return format("  %7s  %6s  %6s%s", "N/A", "N/A", "N/A", kUnchecked);
}

// Width to which rows are padded, so that Leeway's columns are under their titles. The header line
// of nccl-tests ends in a blank that its rows do not have.
constexpr std::size_t kColumnsWidth = 119;
constexpr const char* kExtraColumns = "  %7s  %9s  %7s  %7s  %7s\n";

}  // namespace

std::string format_float(double value, int width) {
  for (const int decimals : {2, 1, 0}) {
    std::string text = format("%*.*f", width, decimals, value);
    if (text.size() <= static_cast<std::size_t>(width)) return text;
  }
  return format(width >= 7 ? "%*.1e" : "%*.0e", width, value);
}

std::string format_header() {
  constexpr const char* kColumns =
      "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s ";
  std::string text = format(
      "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          "
      "\n",
      "", "", "", "", "");
  text += format(kColumns, "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                 "#wrong", "time", "algbw", "busbw", "#wrong");
  text += format(kExtraColumns, "loss%", "nmse", "late%", "p50", "p99");
  text += format(kColumns, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
                 "(GB/s)", "(GB/s)", "");
  text += format(kExtraColumns, "", "", "", "(us)", "(us)");
  return text;
}

std::string format_row(const Row& row) {
  std::string text = format("%12zu  %12zu  %8.*s  %6.*s  %6d", row.bytes, row.count,
                            static_cast<int>(row.type.size()), row.type.data(),
                            static_cast<int>(row.redop.size()), row.redop.data(), row.root);
  text += format_side(row.out_of_place);
  text += row.in_place ? format_side(*row.in_place) : format_absent_side();
  text.resize(kColumnsWidth, ' ');
  text +=
      format(kExtraColumns, format("%.3f", row.loss * 100).c_str(),
             format("%.2e", row.out_of_place.nmse).c_str(), format("%.3f", row.late * 100).c_str(),
             format_float(row.out_of_place.p50_us, 7).c_str(),
             format_float(row.out_of_place.p99_us, 7).c_str());
  return text;
}

std::string format_spending(const Spending& spending) {
  return format(
      "#   a call, all ranks: %.1f data, %.1f repairs, %.1f reports, %.1f control datagrams; %.1f "
      "us "
      "of processor, %.3f ns a byte sent\n",
      spending.data, spending.repair, spending.report, spending.control, spending.processor_us,
      1e3 * spending.processor_us / std::max(spending.bytes, 1.0));
}

std::string format_footer(int rows_wrong, double bandwidth_mean, std::string_view operation) {
  std::string text = format("# %-20s : %d %s\n", "Out of bounds values", rows_wrong,
                            rows_wrong != 0 ? "FAILED" : "OK");
  text += format("# %-20s : %g %s\n", "Avg bus bandwidth", bandwidth_mean, "");
  text += "#\n";
  text += format("# Collective test concluded: %.*s_perf\n", static_cast<int>(operation.size()),
                 operation.data());
  return text;
}

}  // namespace leeway::tools::perf
