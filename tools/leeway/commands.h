// The subcommands of `leeway`. Each lives in a file of its own and has one entry point of this
// shape: it adds its subcommand and options to `app`, and leaves the exit code of its run in
// `exit_code`.
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools {

// Train a small language model over lossy links, beside its loss-free twin. A build without
// libtorch has the command too; there it says what to install.
void register_train(CLI::App& app, int& exit_code);

// Measure collectives in nccl-tests' format.
void register_perf(CLI::App& app, int& exit_code);

// List, measure and choose payload formats.
void register_codec(CLI::App& app, int& exit_code);

// Run scenarios in virtual time and look at packet traces. A build without the simulator has the
// command too; there it says how to get it.
void register_sim(CLI::App& app, int& exit_code);

// Say what this machine lacks, and the command that mends it.
void register_doctor(CLI::App& app, int& exit_code);

// Show what running ranks do, from their metrics.
void register_top(CLI::App& app, int& exit_code);

// Start a program of NCCL with Leeway's libnccl.so.2 in front.
void register_nccl(CLI::App& app, int& exit_code);

// Print a new secret for a job.
void register_keygen(CLI::App& app, int& exit_code);

}  // namespace leeway::tools
