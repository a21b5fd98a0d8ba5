// `leeway sim merge PART...`: merges the parts that several machines made with --shard into one
// result.
//
// Parts are folders of `leeway sim --out`, or files of `leeway sim swarm --json`.
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

// Exit codes: 0 all runs are there and passed, 1 a run is missing or failed, 2 wrong usage, or
// parts that do not belong together.
void add_merge_command(CLI::App& sim, int& exit_code);

}  // namespace leeway::tools::simulation
