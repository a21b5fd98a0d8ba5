// The part of a command's runs that one of several machines makes: every `of`-th run, so that each
// part has cheap and expensive ones.
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
  // Returns how many of all `runs` runs belong to this shard.
  std::size_t share(std::size_t runs) const { return runs < number ? 0 : (runs - number) / of + 1; }
  // Returns the index, among all runs, of this shard's run number `index`.
  std::size_t place(std::size_t index) const { return index * of + number - 1; }

  friend bool operator==(const Shard&, const Shard&) = default;
};

// Parses "2/4", the second of four parts. An empty text means all runs.
Result<Shard> parse_shard(std::string_view text);

// "shard 2 of 4".
std::string to_string(const Shard& shard);

// Returns the text of --shard that follows from the process's place under its launcher (mpirun,
// srun, or LEEWAY_RANK and LEEWAY_WORLD_SIZE of an indexed job). Returns no text without a
// launcher, or if there is only one process.
Result<std::string> launcher_shard(const rendezvous::EnvironmentGetter& get);

void add_shard_option(CLI::App& command, std::string& shard);

// Chooses this process's shard if --shard was not given and a launcher started several processes,
// which would otherwise all do the same runs. Prints the choice on stderr.
Status default_to_launcher(std::string& shard);

}  // namespace leeway::tools::simulation
