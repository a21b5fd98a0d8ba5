// leeway top: shows what processes with LEEWAY_METRICS are doing, a row for each peer.

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "commands.h"
#include "standard_output.h"
#include "top/page.h"
#include "top/scrape.h"

namespace leeway::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct TopSettings {
  std::vector<std::string> addresses;
  bool once = false;
  bool json = false;
  double every = 2;
};

struct Look {
  top::Samples samples;
  Clock::time_point at;
};

class Watcher {
 public:
  explicit Watcher(const TopSettings& settings) : settings_(settings) {}

  // Scrapes all addresses. Returns a process for each address. If the process there does not
  // answer, its member `error` says why.
  std::vector<top::Process> look() {
    std::vector<top::Process> processes;
    for (const std::string& address : settings_.addresses) processes.push_back(look_at(address));
    return processes;
  }

 private:
  top::Process look_at(const std::string& address) {
    const auto text = top::scrape(address);
    if (!text.ok()) {
      before_.erase(address);
      return {.address = address, .error = std::string(text.status().text()), .groups = {}};
    }
    Look now{top::Samples::parse(*text), Clock::now()};
    const auto known = before_.find(address);
    const Look& before = known == before_.end() ? now : known->second;
    const double seconds = std::chrono::duration<double>(now.at - before.at).count();
    auto process = top::compare(address, before.samples, now.samples, std::max(seconds, 1e-3));
    before_[address] = std::move(now);
    return process;
  }

  const TopSettings& settings_;
  std::map<std::string, Look> before_;
};

bool any_answers(const std::vector<top::Process>& processes) {
  for (const top::Process& process : processes) {
    if (process.error.empty()) return true;
  }
  return false;
}

int run(const TopSettings& settings) {
  Watcher watcher(settings);
  const bool once = settings.once || settings.json || ::isatty(STDOUT_FILENO) == 0;
  auto processes = watcher.look();
  for (;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(once ? 1.0 : settings.every));
    processes = watcher.look();
    const std::string page = settings.json ? top::to_json(processes) : top::to_text(processes);
    // Moves to the top left corner and clears the screen below it, then prints the page.
    print((once ? "" : "\033[H\033[J") + page);
    if (once) return any_answers(processes) ? 0 : 1;
  }
}

}  // namespace

void register_top(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("top", "Show what running ranks do: leeway top 127.0.0.1:9464 ...");
  const auto settings = std::make_shared<TopSettings>();
  command->add_option("address", settings->addresses, "Where LEEWAY_METRICS answers: HOST:PORT")
      ->required();
  command->add_flag("--once", settings->once, "One page, over one second");
  command->add_flag("--json", settings->json, "The same for machines");
  command->add_option("--every", settings->every, "Seconds between pages")
      ->check(CLI::Range(0.2, 3600.0));
  command->footer(
      "Of a terminal the page is shown again and again; else once. \"waits for\": what data to "
      "and\n"
      "from the peer waited for most of the time: uplink (this host's pace or processor), grant "
      "(the\n"
      "peer has room for no more), relay (the relay on the way has no share for more), peer (it\n"
      "was late), deadline, application (nothing to do).");
  command->callback([settings, &exit_code] { exit_code = run(*settings); });
}

}  // namespace leeway::tools
