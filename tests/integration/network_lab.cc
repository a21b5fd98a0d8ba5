#include "integration/network_lab.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sstream>

#include "integration/process.h"

namespace leeway::integration {
namespace {

constexpr const char* kPrefix = "leeway-test-";

// Deletes namespaces of test processes that no longer run.
void sweep_leftovers() {
  std::istringstream lines(run_command({"ip", "netns", "list"}).output);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find(' '));
    if (!name.starts_with(kPrefix)) continue;
    const int owner = std::atoi(name.c_str() + std::string(kPrefix).size());
    if (owner > 0 && kill(owner, 0) != 0) run_command({"ip", "netns", "del", name});
  }
}

// Returns the number after one occurrence of `word` in nft's listing, for instance 17 for "packets"
// in "packets 17". `place` counts occurrences from 0.
std::uint64_t number_after(const std::string& text, const std::string& word, int place) {
  std::size_t at = 0;
  for (int seen = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) {
    if (seen++ == place) return std::stoull(text.substr(at + word.size()));
  }
  return 0;
}

}  // namespace

NetworkLab::NetworkLab(const LabPlan& plan) : plan_(plan) {}

std::unique_ptr<NetworkLab> NetworkLab::create(const LabPlan& plan, std::string& obstacle) {
  sweep_leftovers();
  std::unique_ptr<NetworkLab> lab(new NetworkLab(plan));
  if (!lab->permitted()) {
    obstacle = "network namespaces cannot be used here: " + lab->obstacle_;
    return nullptr;
  }
  EXPECT_TRUE(lab->build()) << lab->obstacle_;
  return lab;
}

NetworkLab::~NetworkLab() {
  for (const std::string& name : namespaces_) run_command({"ip", "netns", "del", name});
}

bool NetworkLab::permitted() {
  if (geteuid() != 0) {
    obstacle_ = "needs root";
    return false;
  }
  return run({"ip", "-V"}) && run({"ethtool", "--version"}) && run({"nft", "--version"}) &&
         add_namespace(middle_name());
}

bool NetworkLab::add_namespace(const std::string& name) {
  if (!run({"ip", "netns", "add", name})) return false;
  namespaces_.push_back(name);
  return true;
}

bool NetworkLab::build() {
  const std::string middle = middle_name();
  if (plan_.join == Join::bridge) {
    if (!run({"ip", "-n", middle, "link", "add", "bridge", "type", "bridge"})) return false;
    if (!run({"ip", "-n", middle, "link", "set", "bridge", "up"})) return false;
  } else if (!run({"ip", "netns", "exec", middle, "sysctl", "-qw", "net.ipv4.ip_forward=1"})) {
    return false;
  }
  for (int host = 0; host < plan_.hosts; ++host) {
    if (!add_host(host)) return false;
  }
  return true;
}

bool NetworkLab::add_host(int host) {
  const std::string name = host_name(host);
  const std::string port = "port" + std::to_string(host);
  const std::string width = std::to_string(mtu(host));
  const int prefix_bits = plan_.join == Join::bridge ? 16 : 24;
  const std::string address = address_of(host) + "/" + std::to_string(prefix_bits);
  return add_namespace(name) &&
         run({"ip", "-n", middle_name(), "link", "add", port, "type", "veth", "peer", "name",
              "eth0", "netns", name}) &&
         run({"ip", "-n", name, "link", "set", "eth0", "mtu", width}) &&
         run({"ip", "-n", middle_name(), "link", "set", port, "mtu", width}) &&
         run({"ip", "-n", name, "addr", "add", address, "dev", "eth0"}) &&
         run({"ip", "-n", name, "link", "set", "lo", "up"}) &&
         run({"ip", "-n", name, "link", "set", "eth0", "up"}) &&
         run({"ip", "-n", middle_name(), "link", "set", port, "up"}) &&
         (plan_.join == Join::bridge ? join_by_bridge(host) : join_by_router(host)) &&
         make_packets_true(name, "eth0") && make_packets_true(middle_name(), port) &&
         lose_datagrams(host);
}

bool NetworkLab::join_by_bridge(int host) {
  return run({"ip", "-n", middle_name(), "link", "set", "port" + std::to_string(host), "master",
              "bridge"});
}

bool NetworkLab::join_by_router(int host) {
  const std::string gateway = "10.99." + std::to_string(host) + ".254";
  return run({"ip", "-n", middle_name(), "addr", "add", gateway + "/24", "dev",
              "port" + std::to_string(host)}) &&
         run({"ip", "-n", host_name(host), "route", "add", "default", "via", gateway});
}

// Turns the device's offloads off. With offloads, a veth passes a train of up to 64 KiB as one
// packet, so a loss would hit the whole train.
bool NetworkLab::make_packets_true(const std::string& name, const std::string& device) {
  return run({"ip", "netns", "exec", name, "ethtool", "-K", device, "tx-udp-segmentation", "off",
              "gso", "off", "tso", "off", "gro", "off"});
}

bool NetworkLab::lose_datagrams(int host) {
  if (plan_.loss_permille == 0) return true;
  const std::string below = std::to_string(plan_.loss_permille);
  const std::string rules =
      "table inet loss {\n chain input {\n  type filter hook input priority 0; policy accept;\n"
      "  meta l4proto udp counter numgen random mod 1000 < " +
      below + " counter drop\n }\n}\n";
  return run({"ip", "netns", "exec", host_name(host), "nft", rules});
}

NetworkLab::Drops NetworkLab::drops() const {
  Drops all;
  for (int host = 0; host < plan_.hosts; ++host) {
    const Outcome listing =
        run_command({"ip", "netns", "exec", host_name(host), "nft", "list", "ruleset"});
    all.seen += number_after(listing.output, "packets ", 0);
    all.dropped += number_after(listing.output, "packets ", 1);
  }
  return all;
}

bool NetworkLab::run(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"sh", "-c", "exec \"$@\" 2>&1",
                                   "sh"};  // its error text becomes the obstacle
  argv.insert(argv.end(), words.begin(), words.end());
  const Outcome outcome = run_command(argv);
  if (outcome.exit_code == 0) return true;
  for (const std::string& word : words) obstacle_ += word + " ";
  obstacle_ += "says: " + outcome.output;
  return false;
}

std::string NetworkLab::address_of(int host) const {
  return plan_.join == Join::bridge ? "10.99.0." + std::to_string(host + 1)
                                    : "10.99." + std::to_string(host) + ".1";
}

std::vector<std::string> NetworkLab::prefix_of(int host) const {
  return {"ip", "netns", "exec", host_name(host)};
}

std::string NetworkLab::host_name(int host) const {
  return kPrefix + std::to_string(getpid()) + "-host" + std::to_string(host);
}

std::string NetworkLab::middle_name() const {
  return kPrefix + std::to_string(getpid()) + "-middle";
}

int NetworkLab::mtu(int host) const {
  constexpr int kEthernet = 1500;
  return host < static_cast<int>(plan_.mtu_of.size()) ? plan_.mtu_of[host] : kEthernet;
}

}  // namespace leeway::integration
