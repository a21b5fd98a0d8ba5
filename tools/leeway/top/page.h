// The page of `leeway top`: a row for each peer of each process, from two looks at its metrics.
#pragma once

#include <string>
#include <vector>

#include "top/samples.h"

namespace leeway::tools::top {

struct Row {
  std::string peer;   // rank, or "others"
  std::string state;  // as leeway_peer_state has it; "relayed": alive, without a path of its own
  bool relayed = false;
  double rtt_seconds = -1;  // negative if it is not known
  // share of the datagrams between the two looks that was lost; negative without any
  double loss = -1;
  double out_per_second = 0;  // bytes
  double in_per_second = 0;   // likewise
  double queue_seconds = -1;  // negative if it is not known
  std::string limit;          // reason for which data waited most of the time
  double limit_share = 0;     // share of the time
};

// A relay of a process, which had no share for all that it was asked to relay.
struct Relay {
  std::string address;
  double pace_per_second = 0;  // bytes that it passes on
  double sent = 0;             // datagrams between the two looks
  double refused = 0;          // datagrams of `sent` that were refused
};

// A communicator of a process on one of its sockets.
struct Group {
  std::string communicator;
  std::string transport;
  std::string rank;
  std::string size;
  std::string datagram_bytes;
  bool sealed = false;
  double pace_per_second = -1;  // bytes; negative if nothing paces
  double noise = -1;            // the noise floor; negative if it is not known
  double calls_per_second = 0;
  double call_seconds = -1;  // mean of these; negative: there were none
  double missing = -1;       // share of their packets; negative: they expected none
  double refused = 0;        // datagrams between the two looks, for any reason
  std::vector<Relay> relays;
  std::vector<Row> rows;
};

struct Process {
  std::string address;
  std::string error;  // no text if it answered
  std::vector<Group> groups;
};

// `seconds` apart. Counters of a process that was not seen before count since its start, as if all
// of it had happened within these seconds.
Process compare(const std::string& address, const Samples& before, const Samples& now,
                double seconds);

// A table, about 110 columns wide.
std::string to_text(const std::vector<Process>& processes);
std::string to_json(const std::vector<Process>& processes);

}  // namespace leeway::tools::top
