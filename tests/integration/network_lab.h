// Hosts in network namespaces, joined by a bridge or a router, with packets as on a wire and loss
// in the kernel.
//
// Everything lies in namespaces whose names contain this process's id; the machine's own network is
// not touched. The destructor deletes the namespaces. If a test was killed, the next test deletes
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leeway::integration {

enum class Join { bridge, router };

struct LabPlan {
  int hosts = 4;
  Join join = Join::bridge;
  int loss_permille = 0;    // loss of UDP datagrams, at every host's input
  std::vector<int> mtu_of;  // MTU of each host's link; default 1500. May be shorter than `hosts`.
};

class NetworkLab {
 public:
  // Returns null, with the reason in `obstacle`, if this machine does not permit namespaces or
  // lacks a tool. Later errors fail the test.
  static std::unique_ptr<NetworkLab> create(const LabPlan& plan, std::string& obstacle);
  ~NetworkLab();
  NetworkLab(const NetworkLab&) = delete;
  NetworkLab& operator=(const NetworkLab&) = delete;

  std::string address_of(int host) const;
  // Returns the words that make a command run on this host.
  std::vector<std::string> prefix_of(int host) const;

  // Counts of UDP datagrams over all hosts since creation: those that arrived at a host, and those
  // that the host's firewall rule dropped.
  struct Drops {
    std::uint64_t seen = 0;
    std::uint64_t dropped = 0;
  };
  Drops drops() const;

 private:
  explicit NetworkLab(const LabPlan& plan);
  bool permitted();
  bool build();
  bool add_namespace(const std::string& name);
  bool add_host(int host);
  bool join_by_bridge(int host);
  bool join_by_router(int host);
  bool make_packets_true(const std::string& name, const std::string& device);
  bool lose_datagrams(int host);
  bool run(const std::vector<std::string>& words);  // on failure returns false and sets obstacle_
  std::string host_name(int host) const;
  std::string middle_name() const;
  int mtu(int host) const;

  LabPlan plan_;
  std::string obstacle_;
  std::vector<std::string> namespaces_;
};

}  // namespace leeway::integration
