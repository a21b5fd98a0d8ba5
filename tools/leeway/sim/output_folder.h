// The folder for a command's results. A reader never sees a half-written file.
//
//   summary.json rounds.csv links.csv report.html   written when the command ends
//   scenario.txtpb                                   what was run; decides whether --resume fits
//   arguments.json                                   the command's arguments as typed
//   runs/<cell>-<seed>.json                          records of finished runs, which --resume keeps
//
// Several processes that make parts of a command's runs may share a folder.
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

// Treatment of a folder that has results already. With `share` the results stay, because they
// belong to other processes that run the same scenario.
enum class Existing { refuse, resume, share, overwrite };

class OutputFolder {
 public:
  // Makes the folder if it does not exist, and checks that it is writable. `scenario` is the text
  // of the scenario to be run. Refuses a folder with results of another scenario, or of the same
  // one with Existing::refuse. Existing::overwrite removes only files that this command writes.
  static Result<OutputFolder> open(const std::filesystem::path& folder, std::string_view scenario,
                                   Existing existing);
  // Returns a folder for reading, without checks.
  static OutputFolder of(const std::filesystem::path& folder) { return OutputFolder(folder); }

  // Replaces a file in one step, so readers see the old or the new content. Threads may write
  // different names at the same time.
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
