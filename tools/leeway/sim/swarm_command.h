// `leeway sim swarm`: draws scenarios from seeds, checks every invariant, and reduces the first
// scenario that fails.
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

// Exit codes: 0 all seeds passed, 1 one failed, 2 wrong usage, 128 + signal when stopped.
void add_swarm_command(CLI::App& sim, int& exit_code);

}  // namespace leeway::tools::simulation
