// The largest value of the last one to two windows; the caller says where a window ends.
#pragma once

#include <algorithm>

namespace leeway::congestion {

class WindowedMax {
 public:
  void add(double value) { current_ = std::max(current_, value); }
  void next_window() {
    previous_ = current_;
    current_ = 0;
  }
  double value() const { return std::max(current_, previous_); }

 private:
  double current_ = 0;
  double previous_ = 0;
};

}  // namespace leeway::congestion
