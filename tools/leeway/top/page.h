// The page of `leeway top`: a row for each peer of each process, from two readings of its metrics.
#pragma once

#include <string>
#include <vector>

#include "top/samples.h"

namespace leeway::tools::top {

struct Row {
  std::string peer;  // rank, or "others"
  // A peer's state as in the metric leeway_peer_state, or "relayed" if it is alive and reached by a
  // relay.
  std::string state;
  bool relayed = false;
  double rtt_seconds = -1;  // negative if it is not known
  // share of the datagrams lost between the two readings; negative if none were sent
  double loss = -1;
  double out_per_second = 0;  // bytes
  double in_per_second = 0;   // likewise
  double queue_seconds = -1;  // negative if it is not known
  std::string limit;          // reason for which data waited most of the time
  double limit_share = 0;     // share of the time for which that reason held
};

// A relay that a process uses, and that could not forward all its datagrams.
struct Relay {
  std::string address;
  double pace_per_second = 0;  // bytes a second that it passes on
  double sent = 0;             // datagrams sent through it between the two readings
  double refused = 0;          // datagrams of `sent` that were refused
};

// One communicator of a process, on one of the process's sockets.
struct Group {
  std::string communicator;
  std::string transport;
  std::string rank;
  std::string size;
  std::string datagram_bytes;
  bool sealed = false;
  double pace_per_second = -1;  // bytes a second; negative if nothing paces
  double noise = -1;            // the noise floor; negative if it is not known
  double calls_per_second = 0;
  double call_seconds = -1;  // mean time of these calls; negative if there were none
  double missing = -1;       // missing share of their packets; negative if they expected none
  double refused = 0;        // datagrams refused for any reason between the two readings
  std::vector<Relay> relays;
  std::vector<Row> rows;
};

struct Process {
  std::string address;
  std::string error;  // why the process did not answer, or empty
  std::vector<Group> groups;
};

// Compares two readings that are `seconds` apart. If a process was not seen before, its counters
// are taken to have grown from 0 within this time.
Process compare(const std::string& address, const Samples& before, const Samples& now,
                double seconds);

// A table, about 110 columns wide.
std::string to_text(const std::vector<Process>& processes);
std::string to_json(const std::vector<Process>& processes);

}  // namespace leeway::tools::top
