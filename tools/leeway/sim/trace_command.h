// `leeway sim trace show|diff|pcapng`: packet traces for people and for Wireshark.
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

// Adds the subcommands to `trace`. Exit codes: 0 fine (diff: equal), 1 different, 2 wrong usage or
// a file that cannot be read.
void add_trace_commands(CLI::App& trace, int& exit_code);

}  // namespace leeway::tools::simulation
