// What an operator sees of a driver: metrics where they are asked for.
#pragma once

#include <memory>

#include "driving/driver.h"
#include "leeway/options.h"
#include "rendezvous/log.h"

namespace leeway::observe {

// Has the driver observed as the options say. That metrics cannot be had is a line of the log: no
// job ends for it.
void watch(driving::Driver& driver, const Options& options, rendezvous::Log& log);

}  // namespace leeway::observe
