// The folder that a command's results go to: whose results it holds, and writing that is never
// seen half done.
//
//   summary.json rounds.csv links.csv report.html   made anew whenever the command ends
//   scenario.txtpb                                   what was run; decides whether --resume fits
//   arguments.json                                   what a person typed to run it
//   runs/<cell>-<seed>.json                          finished runs, kept: the record, and what
//                                                    --resume need not run again
//
// Processes that make parts of a command's runs may share a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "leeway/status.h"
#include "sim/plan.h"

namespace leeway::tools::simulation {

inline constexpr const char* kScenarioFile = "scenario.txtpb";
inline constexpr const char* kArgumentsFile = "arguments.json";

// What to do with a folder that holds results already. `share`: they belong to other processes that
// run the same scenario.
enum class Existing { refuse, resume, share, overwrite };

class OutputFolder {
 public:
  // Makes the folder if it does not exist, and checks that it can be written to. `scenario` is the
  // text of the scenario to be run. Refuses a folder with results of other scenarios, and with
  // results of the same one unless they are to be resumed. Overwriting removes only files that this
  // command writes.
  static Result<OutputFolder> open(const std::filesystem::path& folder, std::string_view scenario,
                                   Existing existing);
  // Returns a folder to read from.
  static OutputFolder of(const std::filesystem::path& folder) { return OutputFolder(folder); }

  // Replaces a file at once: readers see the old content or the new one. Safe from several threads
  // for different names.
  Status write(const std::string& name, std::string_view content) const;
  Status write_run(const RunName& run, std::string_view content) const;

  // Returns the content that write() wrote, or nullopt if there is none. Returns kUnavailable if
  // the file exists and cannot be read.
  Result<std::optional<std::string>> read(const std::string& name) const;
  Result<std::optional<std::string>> read_run(const RunName& run) const;

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

 private:
  explicit OutputFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status make_and_try() const;
  Status admit(std::string_view scenario, Existing existing) const;
  void remove_results() const;
  bool holds_results() const;

  std::filesystem::path folder_;
};

}  // namespace leeway::tools::simulation
