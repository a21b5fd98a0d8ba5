#include "congestion/controller.h"
#include "congestion/fixed.h"
#include "congestion/scavenger.h"
#include "congestion/wan.h"

namespace leeway::congestion {

std::unique_ptr<Controller> make_controller(const Settings& settings) {
  switch (settings.kind) {
    case Kind::none:
      return nullptr;
    case Kind::fixed:
      return std::make_unique<Fixed>(settings.rate_bits_per_second);
    case Kind::scavenger:
      return std::make_unique<Scavenger>();
    case Kind::wan:
      return std::make_unique<Wan>();
  }
  return nullptr;
}

}  // namespace leeway::congestion
