// Probes of the machine. Each adds its findings and never fails: a fact that cannot be found out is
// a finding, too.
#pragma once

#include "doctor/report.h"
#include "rendezvous/environment.h"

namespace leeway::tools::doctor {

// Cores, processor features, kernel, clock.
void probe_machine(Findings& findings);

// UDP with its offloads and buffers, tried on real loopback sockets; interfaces, path datagram
// size.
void probe_network(Findings& findings);

// Finds out what the transports other than UDP find here, whether the network's interface carries
// multicast, and which transport would be used: by automatic choice, or by name. Takes up to a
// second.
void probe_transports(Findings& findings, const rendezvous::EnvironmentGetter& get);

// Finds the launcher of this process, the rank and rendezvous that follow from it, and every
// LEEWAY_ variable.
void probe_environment(Findings& findings, const rendezvous::EnvironmentGetter& get);

}  // namespace leeway::tools::doctor
