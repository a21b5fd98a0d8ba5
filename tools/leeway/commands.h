// The subcommands of `leeway`. Each lives in a file of its own and has one entry point of this shape: it adds its
// subcommand and options to `app`, and leaves the exit code of its run in `exit_code`.
//
// main.cc registers only the commands whose sources are part of this build; CMakeLists.txt says which
// (LEEWAY_COMMAND_<NAME>).
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools {

// Train a small language model over lossy links, beside its loss-free twin. Needs libtorch.
void register_train(CLI::App& app, int& exit_code);

// Measure collectives in nccl-tests' format.
void register_perf(CLI::App& app, int& exit_code);

// Say what this machine lacks, and the command that mends it.
void register_doctor(CLI::App& app, int& exit_code);

}  // namespace leeway::tools
