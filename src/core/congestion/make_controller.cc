#include "congestion/controller.h"
#include "congestion/fabric.h"
#include "congestion/fixed.h"
#include "congestion/scavenger.h"
#include "congestion/wan.h"

namespace leeway::congestion {

std::unique_ptr<Controller> make_controller(const Settings& settings) {
  switch (settings.control) {
    case CongestionControl::none:
      return nullptr;
    case CongestionControl::fixed:
      return std::make_unique<Fixed>(static_cast<double>(settings.rate_bits_per_second));
    case CongestionControl::scavenger:
      return std::make_unique<Scavenger>();
    case CongestionControl::wan:
      return std::make_unique<Wan>();
    case CongestionControl::automatic:  // no choice yet; Node::pace() may follow
      return nullptr;
    case CongestionControl::fabric:
      return std::make_unique<Fabric>();
  }
  return nullptr;
}

}  // namespace leeway::congestion
