#include "codec/list.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "codec/catalog.h"
#include "codec/decibel.h"
#include "codec/error_meter.h"
#include "codec/standard_data.h"
#include "codec/text_table.h"
#include "format.h"

namespace leeway::tools::codecs {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kListSeed = 1;
constexpr double kLognormalSigma = 1.0;

std::optional<double> decibel_of(const std::optional<codec::Format>& format,
                                 std::span<const float> values) {
  if (!format) return std::nullopt;
  return round_trip_error(*format, values, kListSeed).decibel();
}

std::string rounding_of(const std::optional<codec::Format>& nearest,
                        const std::optional<codec::Format>& stochastic) {
  if (nearest && nearest->options.codec == Codec::fp32) return "exact";
  if (nearest && stochastic) return "both";
  return nearest ? "nearest" : "stochastic";
}

// Returns the number of elements that share a scale, or 0 if that is not a fixed number.
std::size_t scale_block(const codec::Format& format) {
  const bool shares = format.block_elements > 2 && format.options.codec != Codec::sparse;
  return shares ? format.block_elements : 0;
}

ListRow measure_row(const CatalogEntry& entry, std::span<const float> normal,
                    std::span<const float> lognormal) {
  const CodecOptions options = parse_codec(entry.text).value();
  const auto nearest = format_with(options, Rounding::nearest);
  const auto stochastic = format_with(options, Rounding::stochastic);
  const codec::Format& either = nearest ? *nearest : *stochastic;
  ListRow row;
  row.text = entry.text;
  row.use = entry.use;
  row.bits = bits_per_element(either);
  row.block = scale_block(either);
  row.rounding = rounding_of(nearest, stochastic);
  row.normal_nearest = decibel_of(nearest, normal);
  row.normal_stochastic = decibel_of(stochastic, normal);
  row.lognormal_nearest = decibel_of(nearest, lognormal);
  row.lognormal_stochastic = decibel_of(stochastic, lognormal);
  return row;
}

std::string block_cell(const ListRow& row) {
  if (row.block != 0) return std::to_string(row.block);
  const bool no_scale =
      row.text.starts_with("fp32") || row.text.starts_with("fp16") || row.text.starts_with("bf16");
  return no_scale ? "-" : "packet";
}

TextTable table_of(std::span<const ListRow> rows, bool use_below) {
  std::vector<Column> columns = {
      {"codec", Align::left}, {"bits"},     {"scale\nof"},          {"rounding", Align::left},
      {"N(0,1)\nnearest"},    {"\nstoch."}, {"lognormal\nnearest"}, {"\nstoch."}};
  if (!use_below) columns.push_back({"use", Align::left});
  TextTable table(std::move(columns));
  for (const ListRow& row : rows) {
    std::vector<std::string> cells = {row.text,
                                      format("%.3f", row.bits),
                                      block_cell(row),
                                      row.rounding,
                                      decibel_cell(row.normal_nearest),
                                      decibel_cell(row.normal_stochastic),
                                      decibel_cell(row.lognormal_nearest),
                                      decibel_cell(row.lognormal_stochastic)};
    if (!use_below) cells.push_back(row.use);
    table.add_row(std::move(cells), use_below ? row.use : std::string());
  }
  return table;
}

std::string settings_text() {
  TextTable table({{"", Align::left}, {"", Align::left}, {"", Align::left}});
  for (const SettingEntry& setting : setting_catalog()) {
    table.add_row({std::string("  :") + setting.text, setting.codecs, setting.meaning});
  }
  return table.text();
}

ordered_json row_json(const ListRow& row) {
  return {{"codec", row.text},
          {"bits_per_element", row.bits},
          {"block", row.block},
          {"rounding", row.rounding},
          {"normal_nearest_dB", decibel_json(row.normal_nearest)},
          {"normal_stochastic_dB", decibel_json(row.normal_stochastic)},
          {"lognormal_nearest_dB", decibel_json(row.lognormal_nearest)},
          {"lognormal_stochastic_dB", decibel_json(row.lognormal_stochastic)},
          {"use", row.use}};
}

}  // namespace

std::vector<ListRow> measure_list(std::size_t samples) {
  const auto normal = normal_values(samples, kListSeed);
  const auto lognormal = lognormal_values(samples, kLognormalSigma, kListSeed);
  std::vector<ListRow> rows;
  for (const CatalogEntry& entry : catalog()) rows.push_back(measure_row(entry, normal, lognormal));
  return rows;
}

std::string list_text(std::span<const ListRow> rows, std::size_t width) {
  TextTable table = table_of(rows, false);
  if (width != 0 && table.width() > width) table = table_of(rows, true);
  std::string text = table.text();
  text +=
      "\nbits: an element of a packet of 2,048, scales and header included. nearest and\n"
      "stoch.: signal to noise in dB by rounding, on normal and on lognormal (sigma 1)\n"
      "values; 6 dB is a factor of 2. native sends elements of any type as they lie in\n"
      "memory; automatic chooses while it runs.\n"
      "\nSettings, after the name, e.g. mxfp4:nearest:rotate\n";
  return text + settings_text();
}

std::string list_json(std::span<const ListRow> rows, std::size_t samples) {
  ordered_json document = {{"samples", samples}};
  document["formats"] = ordered_json::array();
  for (const ListRow& row : rows) document["formats"].push_back(row_json(row));
  document["settings"] = ordered_json::array();
  for (const SettingEntry& setting : setting_catalog()) {
    document["settings"].push_back(
        {{"setting", setting.text}, {"codecs", setting.codecs}, {"meaning", setting.meaning}});
  }
  return document.dump(2) + "\n";
}

}  // namespace leeway::tools::codecs
