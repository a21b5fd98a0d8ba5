// A program's own thread in a call that takes long, at the end of the process.
#pragma once

#include <stop_token>

namespace leeway {

// While it lives, exit() asks what this thread is at to stop, and waits for the end of this object
// as for a Thread: OpenSSL may be torn down afterwards, where the program was the first to use it.
class ExitStop {
 public:
  // `further`: who else may ask for it.
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

// What exit() does first: asks all threads and all that is in an ExitStop to stop, and waits for
// them half a second at most. No thread can be had from then on.
void end_threads();

}  // namespace leeway
