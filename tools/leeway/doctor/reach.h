// Which ranks' datagrams reach which others, for `leeway doctor --paths`: asked before a group
// waits for them, with plain datagrams of its own. The findings are exchanged over TCP, where they
// met, so that all of it is on one table.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/rendezvous.h"

namespace leeway::tools::doctor {

// A rank's place among those that look for what is broken.
class Gathering {
 public:
  // Returns nullopt if ranks meet in another way than at an address over TCP, or if one is alone.
  static std::optional<Result<Gathering>> join(const Options& options);

  // Waits until all ranks are there. The error names those that are not.
  Status await_all(Duration patience);
  // All ranks call measure(), send each other datagrams for `listen`, and learn which ones passed.
  struct Reach {
    std::vector<std::string> addresses;     // by rank; without text if the rank told none
    std::vector<std::vector<bool>> passed;  // passed[from][to]
    std::vector<bool> told;                 // by rank, whether it said what it heard
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

// Returns the broken pairs: which way, over which family, and which rank could relay. Returns no
// text if there are none.
std::string broken_paths(const Gathering::Reach& reach);

}  // namespace leeway::tools::doctor
