// Statistics of the calls of a driver's communicators: counts and times by operation and delivery
// class.
//
// The driving thread writes them; readers get copies (board.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collective/request.h"

namespace leeway::observe {

// Upper bounds of the histogram's buckets, in seconds. One more bucket holds longer calls.
inline constexpr std::array<double, 22> kCallSeconds = {
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2,
    5e-2, 0.1,  0.2,  0.5,  1,    2,    5,    10,   20,   50,   100};

struct Calls {
  std::string communicator;
  collective::OperationKind kind = collective::OperationKind::barrier;
  Delivery::Kind delivery = Delivery::Kind::exact;

  std::array<std::uint64_t, kCallSeconds.size() + 1> buckets{};
  double seconds = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t deadline_cuts = 0;
  std::uint64_t packets_expected = 0;
  std::uint64_t packets_missing = 0;
  std::uint64_t contributions_missing = 0;
  // The next three members are for the latest reduction. They are unset before the first reduction
  bool reduced = false;
  double contributors_mean = 0;
  std::uint32_t contributors_min = 0;
};

class CallBook {
 public:
  void add(const std::string& communicator, const collective::Request& request);
  const std::vector<Calls>& calls() const { return calls_; }

 private:
  Calls& find(const std::string& communicator, const collective::OperationSpec& spec);

  std::vector<Calls> calls_;
};

}  // namespace leeway::observe
