// Finds out for `leeway doctor --paths` between which ranks UDP datagrams pass. The command does
// this before it makes a communicator, which would wait for paths that do not exist. Ranks exchange
// their findings through the rendezvous over TCP, so that rank 0 can show all findings.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/rendezvous.h"

namespace leeway::tools::doctor {

// One rank's part in finding broken paths.
class Gathering {
 public:
  // Connects to the rendezvous of all ranks. Returns nullopt if the rendezvous is not a TCP
  // address, or if there is only one rank.
  static std::optional<Result<Gathering>> join(const Options& options);

  // Waits until all ranks have come. The error names the missing ranks.
  Status await_all(Duration patience);
  // Result of measure(), which all ranks must call. Ranks send each other datagrams for the time
  // `listen`, and then exchange from which ranks datagrams arrived.
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

// Describes the broken paths: direction, address family, and ranks that could relay. Returns no
// text if all paths work.
std::string broken_paths(const Gathering::Reach& reach);

}  // namespace leeway::tools::doctor
