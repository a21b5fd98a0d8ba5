// Another process of the same program, and pipes to and from it. The pipes carry handles, as NCCL's
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
  // Reads a whole handle, or ends the program.
  Handle read_handle() const;
  void write_handle(const Handle& handle) const;
  // A byte tells that the other side has come to this point.
  void wait() const;
  void signal() const;

 protected:
  int from_;
  int to_;
};

class Peer : public Pipes {
 public:
  // Starts the role of that name in another process.
  explicit Peer(const std::string& role, const std::vector<std::string>& arguments = {});
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  pid_t id() const { return id_; }
  void kill();
  // Its exit status; -1 where a signal ended it.
  int wait_for_end();

 private:
  pid_t id_ = -1;
};

// Runs a process that was started as a peer. Returns its exit status.
int run_role(const std::string& name, const std::vector<std::string>& arguments,
             const Pipes& pipes);

}  // namespace nccl_net_test
