// Looks at the machine. Each probe adds its findings and never fails: what cannot be found out is a
// finding too.
#pragma once

#include "doctor/report.h"
#include "runtime/environment.h"

namespace leeway::tools::doctor {

// Cores, processor features, kernel, clock.
void probe_machine(Findings& findings);

// UDP with its offloads and buffers, tried on real loopback sockets; interfaces, path datagram
// size, RDMA devices.
void probe_network(Findings& findings);

// Who launched us, what was made of it, and every LEEWAY_ variable.
void probe_environment(Findings& findings, const runtime::EnvironmentGetter& get);

}  // namespace leeway::tools::doctor
