// Stops a long call on a program's own thread when the process ends.
#pragma once

#include <stop_token>

namespace leeway {

// Made by the thread that does the work. While the object lives, exit() asks the work to stop, and
// waits until the object is destroyed, half a second at most. If the program initialised OpenSSL
// before this library did, exit() tears OpenSSL down, but only after that wait.
class ExitStop {
 public:
  // A stop requested through `further` stops this work, too.
  explicit ExitStop(std::stop_token further);
  ~ExitStop();
  ExitStop(const ExitStop&) = delete;
  ExitStop& operator=(const ExitStop&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  struct Ask {
    std::stop_source stop;
    void operator()() const { stop.request_stop(); }
  };
  std::stop_source stop_;
  const std::stop_callback<Ask> further_;
};

// The first step of exit(): asks all threads and all ExitStops to stop, and waits for them half a
// second at most. No thread can start from then on.
void end_threads();

}  // namespace leeway
