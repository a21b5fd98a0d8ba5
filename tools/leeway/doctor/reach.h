// Which ranks' datagrams reach which others, for `leeway doctor --paths`: this is found out with
// plain datagrams, before a group waits for paths. Ranks exchange the findings over TCP, where they
// met, so that rank 0 can show all of them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/rendezvous.h"

namespace leeway::tools::doctor {

// One rank's part in finding out which paths are broken.
class Gathering {
 public:
  // Returns nullopt if ranks do not meet at an address over TCP, or if there is only one rank.
  static std::optional<Result<Gathering>> join(const Options& options);

  // Waits until all ranks are there. The error names those that are missing.
  Status await_all(Duration patience);
  // Result of measure(), which all ranks call: they send each other datagrams for `listen`, and
  // learn which ones passed.
  struct Reach {
    std::vector<std::string> addresses;     // by rank; empty if the rank told no address
    std::vector<std::vector<bool>> passed;  // passed[from][to]
    std::vector<bool> told;                 // by rank: whether it told what it heard
  };
  Result<Reach> measure(const Options& options, std::chrono::milliseconds listen);

 private:
  Gathering(std::shared_ptr<TcpRendezvous> store, int rank, int size)
      : store_(std::move(store)), rank_(rank), size_(size) {}
  Status put(const char* what, const std::string& value);
  std::vector<std::string> get_all(const char* what, Duration patience);

  std::shared_ptr<TcpRendezvous> store_;
  int rank_;
  int size_;
};

// Returns the broken pairs: the direction, the address family, and a rank that could relay. Returns
// no text if there are none.
std::string broken_paths(const Gathering::Reach& reach);

}  // namespace leeway::tools::doctor
