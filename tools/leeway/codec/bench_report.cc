#include "codec/bench_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/text_table.h"
#include "doctor/report.h"
#include "format.h"

namespace leeway::tools::codecs {
namespace {

using nlohmann::ordered_json;

std::string rate_cell(double rate) {
  return format(rate < 10.0 ? "%.2f" : "%.1f", rate);
}

std::string ratio_cell(double ratio) {
  return format(ratio < 0.1 ? "%.3f" : "%.2f", ratio);
}

std::string speed_cell(const std::optional<Speed>& speed) {
  if (!speed) return "-     ";
  return format("%5s %5s", rate_cell(speed->gigabytes_per_second).c_str(),
                ratio_cell(speed->to_copy).c_str());
}

// Makes the table of one size. Rows of the same codec follow each other. The first row of a codec
// has the codec's name as its title, and the other rows have the names of their instruction sets.
std::string table_of(std::span<const BenchRow> rows, std::size_t bytes) {
  TextTable table({{"codec", Align::left},
                   {"encode\nnearest\nGB/s ratio"},
                   {"encode\nstochastic\nGB/s ratio"},
                   {"decode\n\nGB/s ratio"},
                   {"decode\nand add\nGB/s ratio"},
                   {"of add"}});
  std::string codec;
  for (const BenchRow& row : rows) {
    if (row.bytes != bytes) continue;
    std::vector<std::string> cells = {row.codec == codec ? "  " + row.target : row.codec};
    codec = row.codec;
    for (const auto* speed :
         {&row.encode_nearest, &row.encode_stochastic, &row.decode, &row.accumulate}) {
      cells.push_back(speed_cell(*speed));
    }
    cells.push_back(row.accumulate ? ratio_cell(row.accumulate->to_add) : "");
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::vector<std::size_t> sizes_of(std::span<const BenchRow> rows) {
  std::vector<std::size_t> sizes;
  for (const BenchRow& row : rows) {
    if (std::find(sizes.begin(), sizes.end(), row.bytes) == sizes.end()) sizes.push_back(row.bytes);
  }
  return sizes;
}

// Returns a line with the speeds of memcpy and y += x at one size. They were measured beside every
// row, so the line gives their medians over the rows.
std::string references_text(std::span<const BenchRow> rows, std::size_t bytes) {
  std::vector<double> copies, adds;
  for (const BenchRow& row : rows) {
    if (row.bytes != bytes) continue;
    copies.push_back(row.copy);
    adds.push_back(row.add);
  }
  std::sort(copies.begin(), copies.end());
  std::sort(adds.begin(), adds.end());
  return format("%s of float32 a buffer: memcpy %s GB/s, y += x %s GB/s\n",
                doctor::bytes_text(bytes).c_str(), rate_cell(copies[copies.size() / 2]).c_str(),
                rate_cell(adds[adds.size() / 2]).c_str());
}

ordered_json speed_json(const std::optional<Speed>& speed) {
  if (!speed) return nullptr;
  return {{"GBps", speed->gigabytes_per_second},
          {"to_memcpy", speed->to_copy},
          {"to_add", speed->to_add}};
}

}  // namespace

std::string bench_text(std::span<const BenchRow> rows, const Machine& machine) {
  std::string text = machine.processor + ", " +
                     (machine.caches.empty() ? "" : machine.caches + ", ") +
                     std::to_string(machine.cores) + (machine.cores == 1 ? " core\n" : " cores\n");
  if (rows.empty()) return text;
  text += "One core, " + rows.front().target + "; ratio: to memcpy, of add: to y += x, beside it\n";
  for (const std::size_t bytes : sizes_of(rows)) {
    text.append("\n").append(references_text(rows, bytes)).append(table_of(rows, bytes));
  }
  return text;
}

std::string bench_json(std::span<const BenchRow> rows, const Machine& machine) {
  ordered_json document;
  document["machine"] = {
      {"processor", machine.processor}, {"caches", machine.caches}, {"cores", machine.cores}};
  document["rows"] = ordered_json::array();
  for (const BenchRow& row : rows) {
    document["rows"].push_back({{"codec", row.codec},
                                {"target", row.target},
                                {"bytes", row.bytes},
                                {"memcpy_GBps", row.copy},
                                {"add_GBps", row.add},
                                {"encode_nearest", speed_json(row.encode_nearest)},
                                {"encode_stochastic", speed_json(row.encode_stochastic)},
                                {"decode", speed_json(row.decode)},
                                {"decode_accumulate", speed_json(row.accumulate)}});
  }
  return document.dump(2) + "\n";
}

}  // namespace leeway::tools::codecs
