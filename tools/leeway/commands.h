// The subcommands of `leeway`, each in a file of its own. Each function adds its subcommand and
// options to `app`. When the subcommand runs, it stores its exit code in `exit_code`.
#pragma once

namespace CLI {
class App;
}

namespace leeway::tools {

// Trains a small language model over lossy links, and again without loss. In a build without
// libtorch the command only says what to install.
void register_train(CLI::App& app, int& exit_code);

// Measures collectives in nccl-tests' format.
void register_perf(CLI::App& app, int& exit_code);

// Lists, measures and chooses payload formats.
void register_codec(CLI::App& app, int& exit_code);

// Runs scenarios in virtual time, and shows packet traces. In a build without the simulator the
// command only says how to get it.
void register_sim(CLI::App& app, int& exit_code);

// Says what this machine lacks, and the commands that repair it.
void register_doctor(CLI::App& app, int& exit_code);

// Shows what running ranks do, from their metrics.
void register_top(CLI::App& app, int& exit_code);

// Starts a program that uses NCCL with Leeway's libnccl.so.2 in front.
void register_nccl(CLI::App& app, int& exit_code);

// Prints a new secret for a job.
void register_keygen(CLI::App& app, int& exit_code);

}  // namespace leeway::tools
