// leeway codec: shows which payload formats there are, how fast they are on this machine, and which
// one suits a tensor.

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "codec/bench_report.h"
#include "codec/inspect_report.h"
#include "codec/list.h"
#include "codec/progress_line.h"
#include "codec/settings.h"
#include "codec/text_table.h"
#include "commands.h"
#include "exit_code.h"
#include "format.h"
#include "standard_output.h"
#include "text_file.h"

namespace leeway::tools {
namespace {

constexpr std::size_t kListSamples = std::size_t{1} << 18;
constexpr std::size_t kPlainWidth = 80;  // columns of drawings that do not go to a terminal

// Prints `text`, unless the JSON goes to standard output. Writes the JSON if a path was given.
// Returns the exit code.
int conclude(const std::string& text, const std::string& json, const std::string& json_path) {
  if (json_path != "-") print(text);
  if (json_path.empty()) return 0;
  const Status status = write_text(json_path, json);
  return status.ok() ? 0 : complain(status);
}

int run_list(const std::string& json_path) {
  const auto rows = codecs::measure_list(kListSamples);
  return conclude(codecs::list_text(rows, codecs::terminal_width(STDOUT_FILENO)),
                  codecs::list_json(rows, kListSamples), json_path);
}

int run_bench(const codecs::BenchArguments& arguments) {
  const auto settings = codecs::understand(arguments);
  if (!settings.ok()) return complain(settings.status());
  codecs::ProgressLine line(stderr);
  const auto rows = codecs::measure_bench(
      *settings, [&line](std::size_t done, std::size_t total, const codecs::BenchRow& next) {
        line.show(format("measuring %zu of %zu: %s on %s, %zu KiB", done + 1, total,
                         next.codec.c_str(), next.target.c_str(), next.bytes >> 10));
      });
  line.show("");
  const codecs::Machine machine = codecs::this_machine();
  return conclude(codecs::bench_text(rows, machine), codecs::bench_json(rows, machine),
                  settings->json_path);
}

int run_inspect(const codecs::InspectArguments& arguments) {
  const auto options = codecs::understand(arguments);
  if (!options.ok()) return complain(options.status());
  auto source = codecs::FloatSource::open(arguments.path);
  if (!source.ok()) return complain(source.status());
  codecs::ProgressLine line(stderr);
  const auto inspection = codecs::inspect(*source, arguments.path, *options,
                                          [&line](const std::string& text) { line.show(text); });
  line.show("");
  if (!inspection.ok()) return complain(inspection.status());
  const std::size_t terminal = codecs::terminal_width(STDOUT_FILENO);
  const std::size_t width =
      terminal == 0 ? kPlainWidth : std::clamp<std::size_t>(terminal, 60, 120);
  return conclude(codecs::inspect_text(*inspection, width), codecs::inspect_json(*inspection),
                  arguments.json_path);
}

CLI::Option* add_json(CLI::App& command, std::string& path) {
  return command.add_option("--json", path,
                            "Also write the figures to this file (- for standard output only)");
}

void add_list(CLI::App& codec, int& exit_code) {
  auto* command = codec.add_subcommand("list", "Bits and error of every codec, and its settings");
  const auto json_path = std::make_shared<std::string>();
  add_json(*command, *json_path);
  command->callback([json_path, &exit_code] { exit_code = run_list(*json_path); });
}

void add_bench(CLI::App& codec, int& exit_code) {
  auto* command = codec.add_subcommand("bench", "Speed of every codec beside memcpy and y += x");
  const auto arguments = std::make_shared<codecs::BenchArguments>();
  command->add_option("--codec", arguments->codecs, "Only these, e.g. nvfp4 mxfp4:rotate");
  command
      ->add_option("--bytes", arguments->sizes,
                   "Float32 bytes of a buffer: one that L2 holds twice, one beyond all caches")
      ->delimiter(',')
      ->capture_default_str();
  command->add_flag("--all-targets", arguments->all_targets,
                    "On every instruction set of this processor, not on the best alone");
  add_json(*command, arguments->json_path);
  command->callback([arguments, &exit_code] { exit_code = run_bench(*arguments); });
}

void add_inspect(CLI::App& codec, int& exit_code) {
  auto* command = codec.add_subcommand("inspect", "Which codec a tensor wants, and at what error");
  const auto arguments = std::make_shared<codecs::InspectArguments>();
  command->add_option("FILE", arguments->path, "Raw little-endian float32; - is standard input")
      ->required();
  command
      ->add_option("--sparsity", arguments->sparsities,
                   "Parts of the elements that pruning shall set to zero")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--ranks", arguments->ranks, "Ranks whose tensors are averaged")
      ->capture_default_str();
  add_json(*command, arguments->json_path);
  command->callback([arguments, &exit_code] { exit_code = run_inspect(*arguments); });
}

}  // namespace

void register_codec(CLI::App& app, int& exit_code) {
  auto* codec = app.add_subcommand("codec", "List, measure and choose payload formats");
  codec->require_subcommand(1);
  add_list(*codec, exit_code);
  add_bench(*codec, exit_code);
  add_inspect(*codec, exit_code);
}

}  // namespace leeway::tools
