#include "sim/repeat_command.h"

#include <nlohmann/json.hpp>

namespace leeway::tools::simulation {
namespace {

std::string with_settings(const Arguments& arguments) {
  std::string command = "leeway sim " + shell_word(arguments.file);
  if (arguments.full) command += " --full";
  for (const std::string& setting : arguments.settings) command += " --set " + shell_word(setting);
  return command;
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string repeat_command(const Arguments& arguments, const Plan& plan, const RunName& run) {
  std::string command = with_settings(arguments);
  for (const sim::scenario::Setting& setting : plan.grid[run.cell].settings) {
    if (!setting.acts) continue;
    command += " --set " + shell_word(setting.field + "=" + setting.value);
  }
  const std::string seed = std::to_string(run.seed);
  return command + " --seeds " + seed + ".." + seed;
}

std::string resume_command(const Arguments& arguments) {
  std::string command = with_settings(arguments);
  if (!arguments.seeds.empty()) command += " --seeds " + shell_word(arguments.seeds);
  if (!arguments.shard.empty()) command += " --shard " + arguments.shard;
  if (arguments.jobs > 0) command += " --jobs " + std::to_string(arguments.jobs);
  return command + " --out " + shell_word(arguments.out) + " --resume";
}

std::string arguments_json(const Arguments& arguments) {
  const nlohmann::ordered_json json = {{"file", arguments.file},
                                       {"full", arguments.full},
                                       {"set", arguments.settings},
                                       {"seeds", arguments.seeds}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<Arguments> parse_arguments(std::string_view json) {
  Arguments arguments;
  try {
    const auto read = nlohmann::json::parse(json);
    read.at("file").get_to(arguments.file);
    read.at("full").get_to(arguments.full);
    read.at("set").get_to(arguments.settings);
    read.at("seeds").get_to(arguments.seeds);
  } catch (const nlohmann::json::exception& error) {
    return Status::error(StatusCode::kInvalidArgument, "these are no arguments of leeway sim: %s",
                         error.what());
  }
  return arguments;
}

}  // namespace leeway::tools::simulation
