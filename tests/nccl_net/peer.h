// A helper process of this program, and pipes to it. The pipes carry connection handles, as NCCL's
// bootstrap does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "net.h"

namespace nccl_net_test {

class Pipes {
 public:
  Pipes(int from, int to) : from_(from), to_(to) {}
  // Reads a whole handle. Ends the program if that fails.
  Handle read_handle() const;
  void write_handle(const Handle& handle) const;
  // wait() waits for a byte of the other side, and signal() sends one. Such a byte says that a side
  // has come as far as agreed.
  void wait() const;
  void signal() const;

 protected:
  int from_;
  int to_;
};

class Peer : public Pipes {
 public:
  // Starts another process in the role `role`.
  explicit Peer(const std::string& role, const std::vector<std::string>& arguments = {});
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  pid_t id() const { return id_; }
  void kill();
  // Waits until the process ends. Returns its exit status, or -1 if a signal ended it.
  int wait_for_end();

 private:
  pid_t id_ = -1;
};

// Plays a role in a helper process. Returns the exit status.
int run_role(const std::string& name, const std::vector<std::string>& arguments,
             const Pipes& pipes);

}  // namespace nccl_net_test
