// A communicator with NVIDIA's NCCL inside its nodes and Leeway between them. The interface of this
// folder.
//
// A Hierarchy is what a communicator has besides its own Leeway communicator: NVIDIA's
// communicator of the ranks of its node, Leeway's of its peers (the ranks of equal index in all
// nodes), and, where a policy says `nccl`, NVIDIA's of all ranks. Ranks decide together whether
// there is one.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/driver.h"
#include "interop/nccl/config.h"
#include "interop/nccl/hierarchy/hops.h"
#include "interop/nccl/hierarchy/inner.h"
#include "interop/nccl/hierarchy/nodes.h"
#include "interop/nccl/hierarchy/real.h"
#include "interop/nccl/hierarchy/watch.h"
#include "leeway/communicator.h"

namespace leeway::nccl {

// What ranks tell each other before they decide.
struct HierarchyFacts {
  std::uint64_t has_driver = 0;
  std::uint64_t version = 0;  // of NVIDIA's library; 0: none
  std::uint64_t host = 0;
  std::uint64_t gpu = 0;
};

// What comes of the facts, on all ranks alike.
struct HierarchyPlan {
  std::optional<Nodes> nodes;  // none: operations are flat
  bool everywhere = false;     // NVIDIA's communicator of all ranks, for rules that say `nccl`
  std::string text;            // for the log

  bool any() const { return nodes.has_value() || everywhere; }
};

class Hierarchy : public std::enable_shared_from_this<Hierarchy> {
 public:
  // This process's, of the CUDA device `ordinal`. `why`: why there is no library of NVIDIA's.
  static HierarchyFacts facts(int ordinal, std::string& why);
  // `by_nccl`: some rule says so. `why`: of facts(), for the log.
  static HierarchyPlan plan(std::span<const HierarchyFacts> facts, int self, bool by_nccl,
                            const std::string& why);

  // What a communicator makes a hierarchy of.
  struct Parts {
    std::shared_ptr<Communicator> all;  // of all ranks
    HierarchyPlan plan;
    Config config;
    int device = 0;
    // A rank of the same node, or of all where a policy says nccl, has failed; as Watch::arm().
    std::function<void(const Status& why)> alarm;
  };
  // Blocks until all ranks are there, or `all` is aborted. Null on all ranks: NVIDIA's library has
  // failed on one of them, and operations are flat.
  static Result<std::shared_ptr<Hierarchy>> join(const Parts& parts);

  // How an operation on memory of streams goes.
  enum class Route {
    flat,       // by Leeway, among all ranks
    forwarded,  // by NVIDIA's library
    hops,       // both
  };
  Route route_of(const Operation& operation) const;
  const Nodes& nodes() const { return *nodes_; }
  // Of this node's ranks.
  const std::shared_ptr<Inner>& inside() const { return inside_; }
  // Of a forwarded operation: whose call it is, and the call.
  std::shared_ptr<Inner> inner_of(const Operation& operation) const;
  InnerCall call_of(const Operation& operation) const;
  // Leeway's communicator of the peers; null where there is one node. Kept by who holds it.
  std::shared_ptr<Communicator> between();

  // Calls of one communicator come one after the other, each with all of its hops.
  std::mutex& calls() { return calls_; }
  // A stream for what runs beside a call's own streams, and an event that ties them, for one record
  // and wait at a time.
  struct Aside {
    device::cuda::Stream stream = nullptr;
    device::cuda::Event event = nullptr;
  };
  // Made by the first call, with the communicator's device current.
  Result<Aside> aside(const device::Driver& driver);

  // What NVIDIA's library says.
  Status state() const;

  // Everything ends: NVIDIA's calls and kernels, and Leeway's. Ranks that watch this one are
  // alarmed. On a thread of its own.
  void begin_abort();
  // Streams that wait for an operation must not go on before NVIDIA's kernels behind it know of the
  // end: they would spread what is in memory, and look like success. Calls `then` when that is
  // so, now or later; at once where nothing is aborted.
  void let_go(std::function<void()> then);
  // Returns when let_go() would call at once.
  void wait_let_go();

  // In good order. `at_exit`: NVIDIA's library is left alone, as CUDA may be gone.
  void leave(bool at_exit);

 private:
  // Ids of NVIDIA's communicators, which those who make them tell all.
  struct Ids {
    leeway_nccl_id inside{};
    leeway_nccl_id everywhere{};
  };

  Hierarchy(const RealNccl& real, const Parts& parts)
      : real_(real), nodes_(parts.plan.nodes), all_(parts.all) {}
  static Result<std::vector<Ids>> exchange(Communicator& all, const Ids& own);
  Status meet(const Parts& parts);
  Result<Ids> own_ids(const Parts& parts) const;
  Status join_inner(const Parts& parts);
  bool can_forward(Kind kind) const;
  // By the communicator of all ranks.
  bool goes_everywhere(const Operation& operation) const;
  void abort_inner();
  void abort_all();

  const RealNccl& real_;
  const std::optional<Nodes> nodes_;
  const std::weak_ptr<Communicator> all_;
  std::shared_ptr<Inner> inside_;
  std::shared_ptr<Inner> everywhere_;
  std::unique_ptr<Watch> watch_;
  std::mutex calls_;
  Aside aside_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Communicator> between_;
  enum class End { none, begun, done } end_ = End::none;
  std::vector<std::function<void()>> waiting_;  // of let_go()
};

}  // namespace leeway::nccl
