// The functions that print congestion_bench's tables.
#pragma once

#include <string>

#include "leeway/options.h"

namespace leeway {

extern CongestionControl studied;
extern std::string studied_name;

// All-reduces (congestion_calls.cc)
void print_fast_lines();
void print_bursts();
void print_slow_lines();
void print_sites();
void print_shared();
void print_wide();
void print_switch();
void print_host();
void print_jitter();
void print_lanes_of_calls();  // the second half of print_lanes()

// Endless flows (congestion_flows.cc)
void print_alone();
void print_many();
void print_beside();
void print_changes();
void print_fabric();
void print_incast();
void print_fall();
void print_lanes();

}  // namespace leeway
