// Runs the calls of a rank through its arena, one at a time and in the order in which all ranks
// make them. Calls are numbered from 1, by that order. Calls that a rank makes by datagrams have
// numbers as well (Station::go_elsewhere()).
//
// A rank copies its part of a chunk into a slot and posts a step. When all ranks have posted it,
// each rank takes what it needs from the others' slots and fills its next slot. So each chunk costs
// one wait. If all tensors lie in memory of allocate(), nothing is copied into slots, and ranks
// read each other's tensors. No rank writes another rank's memory.
#pragma once

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "collective/operation_spec.h"
#include "leeway/report.h"
#include "near/plan.h"
#include "near/regions.h"
#include "near/station.h"

namespace leeway::near {

// Descriptor::what of allocate(), which is no operation.
inline constexpr std::uint64_t kAllocation = ~std::uint64_t{0};

struct CallerCounters {
  Word calls{0};      // calls that went through the arena, failed ones included
  Word direct{0};     // calls that passed straight between tensors
  Word apart{0};      // calls left to datagrams by all ranks
  Word elsewhere{0};  // calls in which this rank followed a peer to datagrams
  Word failed{0};
  Word bytes_copied{0};  // bytes copied into and out of slots
};

class Caller {
 public:
  // Files of regions are made in `folder`, and their names begin with `name`.
  Caller(Station& station, std::string folder, std::string name);

  // The way that a call took.
  enum class Way : std::uint8_t {
    here,   // done or failed
    apart,  // not begun on any rank: all make the call by datagrams, in this order
    // not done in memory, because a peer made its call of this number by datagrams
    elsewhere,
  };
  struct Outcome {
    Status status;
    Way way = Way::here;
  };
  // Runs a valid call for which takes() is true. `number` must be larger than the number of the
  // call before. The deadline is measured from `submitted`.
  Outcome run(const collective::OperationSpec& spec, std::uint64_t number, Instant submitted,
              CollectiveReport& report);

  // Fails the call without running it and tells the peers. `why` is the reason, and names the rank
  // `about`.
  Outcome refuse(const collective::OperationSpec& spec, std::uint64_t number, const Status& why,
                 Rank about);

  // Allocates `bytes` bytes (at least 1) on each rank, in memory that all ranks map. If some rank
  // cannot share its memory, all ranks get ordinary memory instead.
  Result<std::shared_ptr<Region>> allocate(std::size_t bytes, std::uint64_t number,
                                           Instant submitted, Duration deadline);

  // Call it when the other ranks have gone. Regions are then only this process's own memory.
  void close() { regions_->close(); }

  const CallerCounters& counters() const { return counters_; }

 private:
  using Spec = collective::OperationSpec;

  Status begin(const char* name, std::uint64_t number, Instant submitted, Duration deadline);
  Status fail(const Status& status);
  bool is_root() const { return plan_.root == arena_.self(); }
  // This rank's descriptor of the current call.
  Descriptor& own_descriptor() const { return arena_.own_line().descriptors[turn_]; }
  const Descriptor& descriptor_of(Rank rank) const {
    const auto& both = arena_.line(rank).descriptors;
    return both[both[0].call.load(std::memory_order_relaxed) == terms_.call ? 0 : 1];
  }
  void post(std::uint64_t step) { station_.post(terms_.call, step); }
  Status await(std::uint64_t step);
  Descriptor& next_descriptor();
  Status meet();
  Status compare(Rank peer) const;
  bool anyone_apart() const;

  Status go(const Spec& spec, Way& way);
  bool describe(const Spec& spec);
  Status agree_on_direct(const Spec& spec, bool prepared, std::uint64_t& step);
  Status find_tensors(const Spec& spec);
  Status move(const Spec& spec, std::uint64_t step);

  void copy_in(const Spec& spec, std::uint64_t chunk);
  void put(const Spec& spec, Part part, std::byte* to);
  void take(const Spec& spec, std::uint64_t chunk);
  void sum_owned(const Spec& spec, std::uint64_t chunk);
  void gather_owned(const Spec& spec, std::uint64_t chunk);
  // Sums bytes [from, from + bytes) of a chunk over all ranks into `result`.
  void sum(const Spec& spec, std::uint64_t chunk, std::size_t from, std::size_t bytes,
           std::byte* result);
  void copy(const std::byte* from, std::byte* to, std::size_t bytes);
  // Returns where this rank's own elements of a piece lie. If the call has a factor, these elements
  // are already multiplied by it, as other ranks' elements are.
  const std::byte* own_input(const Spec& spec, std::uint64_t chunk, std::size_t piece) const;
  const std::byte* chunk_of(Rank rank, std::uint64_t chunk) const {
    return arena_.slot(rank, peers_[rank].first_slot + chunk);
  }
  std::byte* own_chunk(std::uint64_t chunk) const {
    return arena_.own_slot(peers_[arena_.self()].first_slot + chunk);
  }
  void fill_report(const Spec& spec, Instant submitted, CollectiveReport& report) const;

  Result<Mapping> own_memory(std::size_t place, std::size_t bytes) const;
  Status share(std::size_t bytes, std::size_t place, const std::shared_ptr<Region>& region);
  Result<std::vector<Mapping>> peers_memory(std::size_t bytes) const;
  std::string region_name(Rank rank) const;

  Station& station_;
  const Arena arena_;
  const std::string folder_;
  const std::string name_;
  const std::shared_ptr<Regions> regions_;
  CallerCounters counters_;

  std::size_t turn_ = 0;         // index of this rank's descriptor of the current call
  std::uint64_t next_slot_ = 0;  // number of the next chunk's slot
  bool in_step_ = true;          // unless a peer may still be in a call that this rank left early
  // State of the current call.
  Terms terms_;
  Plan plan_;
  bool direct_ = false;
  bool multiplies_ = false;  // a factor is applied to elements on their way into slots
  struct Peer {
    std::uint64_t first_slot = 0;
    const std::byte* input = nullptr;   // input tensor, in a direct call
    const std::byte* result = nullptr;  // output tensor, in a direct call
  };
  std::vector<Peer> peers_;  // by rank, this one included
  std::vector<const std::byte*> operands_;
  std::vector<double> scales_;
  Instant met_at_, summed_at_;
};

}  // namespace leeway::near
