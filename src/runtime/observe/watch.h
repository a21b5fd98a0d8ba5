// Observation of a driver for operators: log lines, and metrics and a trace if the options ask for
// them.
#pragma once

#include <functional>

#include "driving/driver.h"
#include "leeway/options.h"
#include "rendezvous/log.h"

namespace leeway::observe {

// Observes the driver as the options say. A driver that is observed already stays as it is. If
// metrics cannot be served, that is logged and the job goes on. `segmentation` returns whether a
// GSO batch leaves as one message. The driving thread calls it. The function may be empty if that
// is not known.
void watch(driving::Driver& driver, const Options& options, rendezvous::Log& log,
           std::function<bool()> segmentation = {});

// Logs the line that says which ranks met, and how.
void log_joined(const driving::Channel& channel, const Options& options, bool sealed,
                rendezvous::Log& log);

}  // namespace leeway::observe
