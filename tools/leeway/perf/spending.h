// What calls cost this process: datagrams handed to the network, by kind, their bytes, and
// processor time.
#pragma once

#include "leeway/communicator.h"

namespace leeway::tools::perf {

// Costs of one process since some time, or their sum over ranks. Values are doubles, because ranks
// exchange them as doubles. Datagrams are one communicator's; bytes and processor time are the
// whole process's.
struct Spending {
  double data = 0;     // datagrams of first passes
  double repair = 0;   // data sent again
  double report = 0;   // reports
  double control = 0;  // ENDs, probes and requests for repair
  double bytes = 0;    // bytes of all datagrams, headers included
  double processor_us = 0;

  double datagrams() const { return data + repair + report + control; }
  Spending& operator+=(const Spending& other);
  Spending operator-(const Spending& before) const;
  Spending operator/(double calls) const;
};

Spending spent(const Communicator& communicator);

}  // namespace leeway::tools::perf
