#include "integration/emulated_links.h"

#include <cstdlib>
#include <sstream>

#include "integration/process.h"

namespace leeway::integration {
namespace {

std::vector<std::string> words_of(const char* text, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(text == nullptr ? "" : text);
  for (std::string word; std::getline(stream, word, separator);)
    if (!word.empty()) words.push_back(word);
  return words;
}

// Returns the number after `word` in tc's statistics ("Sent 840 bytes 9 pkt (dropped 1, ..."), or 0
// if the word is missing.
std::uint64_t number_after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::strtoull(&text[at + word.size()], nullptr, 10);
}

}  // namespace

std::unique_ptr<EmulatedLinks> EmulatedLinks::create(const std::string& netem,
                                                     std::string& obstacle) {
  std::unique_ptr<EmulatedLinks> links(new EmulatedLinks);
  links->names_ = words_of(std::getenv("LEEWAY_TEST_LINKS"), ',');
  links->ports_ = words_of(std::getenv("LEEWAY_TEST_PORTS"), ',');
  links->addresses_ = words_of(std::getenv("LEEWAY_TEST_RDMA_ADDRESSES"), ',');
  const std::size_t count = links->names_.size();
  if (count == 0 || links->ports_.size() != count || links->addresses_.size() != count) {
    obstacle = "no links to impair here; tools/vm_test boots a machine that has them";
    return nullptr;
  }
  return links->impair(netem, obstacle) ? std::move(links) : nullptr;
}

bool EmulatedLinks::impair(const std::string& netem, std::string& obstacle) {
  if (netem.empty()) return true;
  for (const std::string& port : ports_) {
    // The default limit of 1000 packets would drop packets of a burst of a few MiB.
    std::vector<std::string> argv = {"tc",   "qdisc", "replace", "dev",   port,
                                     "root", "netem", "limit",   "100000"};
    for (const std::string& word : words_of(netem.c_str(), ' ')) argv.push_back(word);
    const Outcome outcome = run_command(argv);
    if (outcome.exit_code == 0) continue;
    obstacle = "tc cannot put netem on " + port + ": " + outcome.output;
    return false;
  }
  return true;
}

EmulatedLinks::~EmulatedLinks() {
  for (const std::string& port : ports_)
    run_command({"sh", "-c", "tc qdisc del dev " + port + " root 2>/dev/null"});
}

EmulatedLinks::Packets EmulatedLinks::packets() const {
  Packets all;
  for (const std::string& port : ports_) {
    const std::string statistics = run_command({"tc", "-s", "qdisc", "show", "dev", port}).output;
    const std::uint64_t lost = number_after(statistics, "(dropped ");
    all.sent += number_after(statistics, " bytes ") + lost;
    all.lost += lost;
  }
  return all;
}

}  // namespace leeway::integration
