// `leeway sim swarm`: scenarios drawn from seeds, every invariant checked, and a small scenario for
// the first seed that breaks one.
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

// Exit codes: 0 all seeds passed, 1 one failed, 2 wrong usage, 128 + signal when stopped.
void add_swarm_command(CLI::App& sim, int& exit_code);

}  // namespace leeway::tools::simulation
