// One rank of an integration test: worker SCENARIO [key=value ...]. Prints the scenario's facts as
// a JSON line. Exits with 0 if the scenario ran, whatever it found, because the test judges the
// facts.
#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "integration/scenario.h"

namespace leeway::integration {
namespace {

constexpr std::array<std::pair<std::string_view, Scenario>, 13> kScenarios = {{
    {"join_only", join_only},
    {"collectives", collectives},
    {"in_flight", in_flight},
    {"two_groups", two_groups},
    {"threads", threads},
    {"scribbled_memory", scribbled_memory},
    {"lossy_average", lossy_average},
    {"lossy_operations", lossy_operations},
    {"endless_rounds", endless_rounds},
    {"repeat", repeat},
    {"outcomes", outcomes},
    {"size_mismatch", size_mismatch},
    {"junk", junk},
}};

void print(const Facts& facts) {
  // Writes each line in one call, because ranks may share the descriptor under a launcher.
  const std::string line = facts.dump(-1, ' ', false, Facts::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const auto& [known, scenario] : kScenarios) {
    if (name != known) continue;
    print(scenario(Arguments(argc - 2, argv + 2)));
    return 0;
  }
  std::fprintf(stderr, "worker: no scenario \"%s\"\n", argc > 1 ? argv[1] : "");
  return 2;
}

}  // namespace

Arguments::Arguments(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) values_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

std::int64_t Arguments::number(const std::string& key, std::int64_t otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : std::stoll(found->second);
}

std::string Arguments::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : found->second;
}

void end_with(const Status& status) {
  print({{"error", facts_of(status)}});
  std::exit(0);
}

Options environment_options() {
  const auto options = Options::from_environment();
  if (!options.ok()) end_with(options.status());
  return *options;
}

std::unique_ptr<Communicator> join(const Options& options) {
  auto group = Communicator::create(options);
  if (!group.ok()) end_with(group.status());
  return std::move(group).value();
}

std::unique_ptr<Communicator> join() {
  return join(environment_options());
}

void mark(const std::string& name) {
  print({{"mark", name}});
}

Facts facts_of(const Status& status) {
  return {{"code", std::string(to_string(status.code()))}, {"text", std::string(status.text())}};
}

double milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

Facts join_only(const Arguments&) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return milliseconds(std::chrono::steady_clock::now() - start); };
  const auto options = Options::from_environment();
  if (!options.ok()) return {{"error", facts_of(options.status())}, {"elapsed_ms", elapsed()}};
  auto group = Communicator::create(*options);
  if (!group.ok()) return {{"error", facts_of(group.status())}, {"elapsed_ms", elapsed()}};
  const auto met = (*group)->barrier(std::chrono::seconds(20));
  if (!met.ok()) end_with(met.status());
  return {{"rank", (*group)->rank()}, {"size", (*group)->size()}, {"elapsed_ms", elapsed()}};
}

}  // namespace leeway::integration

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives its test
  return leeway::integration::run(argc, argv);
}
