// Memory of allocate(): each rank has its own, and maps the memory of the other ranks to read it. A
// region has the number of the call that made it, so no region is ever mistaken for another.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <vector>

#include "near/station.h"

namespace leeway::near {

class Regions;

// A rank's own part of a region, or ordinary memory. The destructor frees the memory.
class Region {
 public:
  explicit Region(Mapping memory) : memory_(std::move(memory)) {}
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  MutableByteSpan memory() const { return {memory_.data(), memory_.size()}; }
  // Returns true if all ranks map the memory.
  bool shared() const { return number_ != 0; }

 private:
  friend class Regions;
  Mapping memory_;
  std::uint64_t number_ = 0;
  std::weak_ptr<Regions> regions_;
};

class Regions : public std::enable_shared_from_this<Regions> {
 public:
  explicit Regions(Station& station);

  // Returns a free place of Line::regions, or kRegionsMax if there is none.
  std::size_t free_place();
  // Adds the region `number`. `own` is this rank's memory, listed at index `place` of its
  // Line::regions. `peers` has the other ranks' memory, by rank. `places` has the index at which
  // each rank lists its memory in its own Line::regions; the word there says whether the rank still
  // has it.
  void add(std::uint64_t number, const std::shared_ptr<Region>& own, std::size_t place,
           std::vector<Mapping> peers, std::vector<std::size_t> places);
  // Unmaps memory that peers have given back since the last call.
  void drop_freed();

  // A place in one of this rank's regions: the region's number and a byte in it. Number 0 stands
  // for memory outside all regions.
  struct Spot {
    std::uint64_t number = 0;
    std::uint64_t at = 0;
  };
  Spot find(ByteSpan tensor);
  // Returns where this rank maps `bytes` bytes of a peer's memory, or null if it does not map them.
  const std::byte* peer(Rank rank, const Spot& spot, std::size_t bytes);

  // After this call a region that is freed is not reported to the other ranks.
  void close();

 private:
  friend class Region;
  struct Entry {
    std::uint64_t number = 0;
    ByteSpan own;  // this rank's memory; empty once it was given back
    std::size_t place = 0;
    std::vector<Mapping> peers;
    std::vector<std::size_t> places;
  };
  void free(std::uint64_t number);
  static bool is_over(const Entry& entry);

  const pid_t process_;
  std::mutex mutex_;  // regions may be given back on any thread
  Station* station_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> freed_seen_;  // by rank
};

}  // namespace leeway::near
