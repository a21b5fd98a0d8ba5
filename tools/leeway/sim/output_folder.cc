#include "sim/output_folder.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

namespace leeway::tools::simulation {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";
constexpr std::array kResults = {"summary.json", "rounds.csv", "links.csv", "report.html"};
constexpr std::array kInputs = {kScenarioFile, kArgumentsFile};

std::string run_file(const RunName& run) {
  return std::string(kRuns) + "/" + std::to_string(run.cell) + "-" + std::to_string(run.seed) +
         ".json";
}

// Returns a name that is unique among all processes that write to the folder, also on other hosts.
std::string process_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string(host.data()) + "-" + std::to_string(::getpid());
}

// Returns the path for messages. A long path is cut to its end, which says more than its beginning.
std::string shown(const fs::path& path) {
  constexpr std::size_t kShown = 120;
  const std::string text = path.string();
  return text.size() <= kShown ? text : "..." + text.substr(text.size() - kShown);
}

Status cannot(const char* what, const fs::path& path, int error, const char* remedy) {
  return Status::error(StatusCode::kUnavailable, "cannot %s %s: %s%s", what, shown(path).c_str(),
                       std::strerror(error), remedy);
}

bool read_all(const fs::path& path, std::string& content) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  content.assign(std::istreambuf_iterator<char>(file), {});
  return !file.bad();
}

}  // namespace

Result<OutputFolder> OutputFolder::open(const fs::path& folder, std::string_view scenario,
                                        Existing existing) {
  OutputFolder opened(folder);
  Status status = opened.make_and_try();
  if (status.ok()) status = opened.admit(scenario, existing);
  if (!status.ok()) return status;
  if (existing == Existing::overwrite) opened.remove_results();
  std::error_code error;
  fs::create_directories(opened.path(kRuns), error);
  if (error) return cannot("make the folder", opened.path(kRuns), error.value(), "");
  status = opened.write(kScenarioFile, scenario);
  if (!status.ok()) return status;
  return opened;
}

Status OutputFolder::make_and_try() const {
  constexpr const char* kRemedy = "; name a folder that you may write to with --out";
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return cannot("make the folder", folder_, error.value(), kRemedy);
  const fs::path trial = folder_ / (".leeway-" + process_name());
  std::FILE* const file = std::fopen(trial.c_str(), "w");
  if (file == nullptr) return cannot("write to", folder_, errno, kRemedy);
  std::fclose(file);
  fs::remove(trial, error);
  return {};
}

// Returns true if there is more than a scenario. A command leaves a folder with only a scenario if
// an error stops it right after its first run.
bool OutputFolder::holds_results() const {
  std::error_code error;
  for (const char* name : kResults) {
    if (fs::exists(folder_ / name, error)) return true;
  }
  const fs::directory_iterator runs(folder_ / kRuns, error);
  return !error && runs != fs::directory_iterator();
}

Status OutputFolder::admit(std::string_view scenario, Existing existing) const {
  if (existing == Existing::overwrite || !holds_results()) return {};
  std::string present;
  const bool same = read_all(folder_ / kScenarioFile, present) && present == scenario;
  if (same && existing != Existing::refuse) return {};
  return Status::error(
      StatusCode::kInvalidArgument, "%s holds results of %s; %s", shown(folder_).c_str(),
      same ? "this scenario" : "another scenario, other settings or another version",
      same ? "add --resume to keep finished runs or --overwrite to replace them"
           : "name another folder with --out, or replace them with --overwrite");
}

void OutputFolder::remove_results() const {
  std::error_code ignored;  // if a file cannot be removed, writing it will fail with an error
  for (const char* name : kResults) fs::remove(folder_ / name, ignored);
  for (const char* name : kInputs) fs::remove(folder_ / name, ignored);
  for (const auto& entry : fs::directory_iterator(folder_ / kRuns, ignored)) {
    if (entry.path().extension() == ".json") fs::remove(entry.path(), ignored);
  }
}

Status OutputFolder::write(const std::string& name, std::string_view content) const {
  const fs::path target = folder_ / name;
  const fs::path unfinished = target.string() + ".unfinished-" + process_name();
  std::FILE* const file = std::fopen(unfinished.c_str(), "wb");
  if (file == nullptr) return cannot("write", unfinished, errno, "");
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  std::error_code error;
  if (written && closed) {
    fs::rename(unfinished, target, error);
    return error ? cannot("write", target, error.value(), "") : Status();
  }
  const int failure = written ? errno : write_error;
  fs::remove(unfinished, error);
  return cannot("write", target, failure, "");
}

Status OutputFolder::write_run(const RunName& run, std::string_view content) const {
  return write(run_file(run), content);
}

Result<std::optional<std::string>> OutputFolder::read_run(const RunName& run) const {
  return read(run_file(run));
}

Result<std::optional<std::string>> OutputFolder::read(const std::string& name) const {
  const fs::path file = folder_ / name;
  std::error_code error;
  if (!fs::exists(file, error)) return std::optional<std::string>();
  std::string content;
  if (!read_all(file, content)) return cannot("read", file, errno, "");
  return std::optional<std::string>(std::move(content));
}

}  // namespace leeway::tools::simulation
