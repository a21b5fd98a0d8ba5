// Controller with a rate that the user sets. It ignores reports.
#pragma once

#include "congestion/controller.h"

namespace leeway::congestion {

class Fixed final : public Controller {
 public:
  explicit Fixed(double bits_per_second) : pace_{.bits_per_second = bits_per_second} {}

  void on_sample(const Sample&) override {}
  Pace pace() const override { return pace_; }
  bool spares_near() const override { return false; }

 private:
  Pace pace_;
};

}  // namespace leeway::congestion
