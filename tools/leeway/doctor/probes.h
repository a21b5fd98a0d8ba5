// Probes of the machine. Each probe adds its findings and never fails. What a probe cannot find out
// is a finding, too.
#pragma once

#include "doctor/report.h"
#include "rendezvous/environment.h"

namespace leeway::tools::doctor {

// Examines the cores, the processor's features, the kernel and the clock.
void probe_machine(Findings& findings);

// Tries UDP on loopback sockets, with its offloads and buffers. Examines the interfaces and the
// largest datagram of the route out.
void probe_network(Findings& findings);

// Examines the transports other than UDP, and whether the network's interface carries multicast.
// Reports which transport LEEWAY_TRANSPORT or the automatic choice would choose. Takes up to a
// second.
void probe_transports(Findings& findings, const rendezvous::EnvironmentGetter& get);

// Reports the launcher of this process, the rank and rendezvous that it gives, and every LEEWAY_
// variable.
void probe_environment(Findings& findings, const rendezvous::EnvironmentGetter& get);

}  // namespace leeway::tools::doctor
