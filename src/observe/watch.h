// What an operator sees of a driver: lines of the log, and metrics where they are asked for.
#pragma once

#include <functional>

#include "driving/driver.h"
#include "leeway/options.h"
#include "rendezvous/log.h"

namespace leeway::observe {

// Has the driver observed as the options say; one that is observed stays so. That metrics cannot be
// had is a line of the log: no job ends for it. `segmentation`: whether trains leave as one
// message, asked by the thread that drives; empty: nobody knows.
void watch(driving::Driver& driver, const Options& options, rendezvous::Log& log,
           std::function<bool()> segmentation = {});

// The line that says who met, and how.
void log_joined(const driving::Channel& channel, const Options& options, bool sealed,
                rendezvous::Log& log);

}  // namespace leeway::observe
