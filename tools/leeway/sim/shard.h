// The part of a command's runs that one of several machines makes: every `of`-th run, so that each
// part gets cheap and expensive cells and seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "leeway/status.h"
#include "rendezvous/environment.h"

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

struct Shard {
  std::uint32_t number = 1;  // 1 .. of
  std::uint32_t of = 1;

  bool whole() const { return of == 1; }
  // Returns how many of `runs` runs are this part's.
  std::size_t share(std::size_t runs) const { return runs < number ? 0 : (runs - number) / of + 1; }
  // Index among all runs of this part's index-th run.
  std::size_t place(std::size_t index) const { return index * of + number - 1; }

  friend bool operator==(const Shard&, const Shard&) = default;
};

// Parses "2/4", the second part of four. An empty text stands for all runs.
Result<Shard> parse_shard(std::string_view text);

// "shard 2 of 4".
std::string to_string(const Shard& shard);

// Returns a shard in the text of --shard: the process's place under its launcher (mpirun, srun,
// LEEWAY_RANK and LEEWAY_WORLD_SIZE of an indexed job). Returns no text without a launcher, or if
// it started one process only.
Result<std::string> launcher_shard(const rendezvous::EnvironmentGetter& get);

// Adds the option --shard of `leeway sim` and `leeway sim swarm`.
void add_shard_option(CLI::App& command, std::string& shard);

// If no shard was asked for and a launcher started several processes, chooses this process's shard:
// otherwise each of them would do the same runs. Prints that on stderr.
Status default_to_launcher(std::string& shard);

}  // namespace leeway::tools::simulation
