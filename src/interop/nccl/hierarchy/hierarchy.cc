#include "interop/nccl/hierarchy/hierarchy.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "interop/nccl/context.h"
#include "interop/nccl/debug.h"
#include "interop/nccl/devices.h"

namespace leeway::nccl {
namespace {

// How long streams are held back for NVIDIA's library to take an abort in: it marks its kernels
// before it waits for them, and it may wait for these streams.
constexpr Duration kAbortPatience = std::chrono::milliseconds(20);

const Result<const RealNccl*>& real_nccl() {
  static const auto* const opened =
      new Result<const RealNccl*>(RealNccl::open(settings().real_nccl));
  return *opened;
}

// The place on the PCI bus. Numbers of devices differ between processes.
std::uint64_t place_of_gpu(const device::Driver& driver, int ordinal) {
  std::uint64_t place = 0;
  for (const int attribute : {device::cuda::kAttributePciDomain, device::cuda::kAttributePciBus,
                              device::cuda::kAttributePciDevice}) {
    int value = 0;
    (void)driver.call.cuDeviceGetAttribute(&value, attribute, ordinal);
    place = place << 16 | static_cast<std::uint16_t>(value);
  }
  return place;
}

template <typename... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), format, arguments...);
  return text.data();
}

// Why no rank may use NVIDIA's library; empty: all may.
std::string obstacle(std::span<const HierarchyFacts> facts, int self, const std::string& why) {
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].has_driver == 0) return formatted("rank %zu has no CUDA driver", rank);
    if (facts[rank].version == 0) {
      const bool own = rank == static_cast<std::size_t>(self);
      return formatted("rank %zu cannot use NVIDIA's NCCL%s%s", rank, own ? ": " : "",
                       own ? why.c_str() : "");
    }
    if (facts[rank].version != facts[0].version)
      return formatted("ranks 0 and %zu have different versions of NVIDIA's NCCL", rank);
  }
  return "";
}

// Whether all ranks are well.
Result<bool> agree(Communicator& all, bool well) {
  std::int32_t least = well ? 1 : 0;
  CollectiveOptions options;
  options.op = ReduceOp::min;
  options.delivery = exact(all.options().join_timeout);
  const auto report = all.all_reduce(TensorView(&least, 1, DataType::i32), options);
  if (!report.ok()) return report.status();
  return least == 1;
}

}  // namespace

HierarchyFacts Hierarchy::facts(int ordinal, std::string& why) {
  const device::Stager* const cuda = stager();
  if (cuda == nullptr) return {};
  HierarchyFacts out;
  out.has_driver = 1;
  out.host = this_host(settings().host_id);
  out.gpu = place_of_gpu(cuda->driver(), ordinal);
  const auto& real = real_nccl();
  if (!settings().meeting_place.empty()) {
    why = "it would take NCCL_COMM_ID for the meeting place of each of its groups";
  } else if (real.ok()) {
    out.version = static_cast<std::uint64_t>((*real)->version);
  } else {
    why = std::string(real.status().text());
  }
  return out;
}

HierarchyPlan Hierarchy::plan(std::span<const HierarchyFacts> facts, int self, bool by_nccl,
                              const std::string& why) {
  HierarchyPlan plan;
  const std::string obstacle = nccl::obstacle(facts, self, why);
  if (!obstacle.empty()) {
    plan.text = "Leeway between all ranks: " + obstacle;
    return plan;
  }
  const std::string name =
      formatted("NVIDIA's NCCL %d (%s)", (*real_nccl())->version, (*real_nccl())->path.c_str());
  plan.everywhere = by_nccl;
  std::vector<Site> sites;
  for (const HierarchyFacts& one : facts) sites.push_back({one.host, one.gpu});
  auto nodes = nodes_of(sites, self);
  if (!nodes.ok()) {
    plan.text = "Leeway between all ranks: " + std::string(nodes.status().text());
  } else if (nodes->single()) {
    plan.text = name + " between all ranks, which are one node";
    plan.nodes = std::move(*nodes);
  } else if (nodes->each == 1) {
    plan.text = "Leeway between all ranks: each is a node";
  } else {
    plan.text = formatted("%d nodes of %d ranks: %s inside, Leeway between", nodes->count,
                          nodes->each, name.c_str());
    plan.nodes = std::move(*nodes);
  }
  if (plan.everywhere) plan.text += "; " + name + " where the policy says nccl";
  return plan;
}

Result<std::shared_ptr<Hierarchy>> Hierarchy::join(const Parts& parts) {
  const std::shared_ptr<Hierarchy> self(new Hierarchy(**real_nccl(), parts));
  if (Status status = self->meet(parts); !status.ok()) return status;
  const Status joined = self->join_inner(parts);
  if (!joined.ok()) {
    warn(joined.text());
    self->watch_->raise();
  }
  const auto agreed = agree(*parts.all, joined.ok());
  if (agreed.ok() && *agreed) {
    self->watch_->arm(parts.alarm);
    return self;
  }
  self->abort_inner();
  if (!agreed.ok()) return agreed.status();
  return std::shared_ptr<Hierarchy>();
}

// Leeway's part: the communicators of peers, and those of ranks that watch each other.
Status Hierarchy::meet(const Parts& parts) {
  const int rank = parts.all->rank();
  if (nodes_ && !nodes_->single()) {
    auto between = parts.all->split(nodes_->local, nodes_->node);
    if (!between.ok()) return between.status();
    between_ = std::move(*between);
  }
  const bool apart = nodes_ && !parts.plan.everywhere;
  auto team = parts.all->split(apart ? nodes_->node : 0, rank);
  if (!team.ok()) return team.status();
  watch_ = std::make_unique<Watch>(std::move(*team));
  return Status();
}

Result<Hierarchy::Ids> Hierarchy::own_ids(const Parts& parts) const {
  const bool twice = parts.plan.everywhere && !(nodes_ && nodes_->single());
  Ids own;
  leeway_nccl_result code = kSuccess;
  if (nodes_ && nodes_->local == 0) code = real_.call.GetUniqueId(&own.inside);
  if (code == kSuccess && twice && parts.all->rank() == 0)
    code = real_.call.GetUniqueId(&own.everywhere);
  if (code == kSuccess) return own;
  return Status::error(StatusCode::kUnavailable, "NVIDIA's NCCL makes no unique id: %.300s",
                       real_.call.GetLastError(nullptr));
}

Result<std::vector<Hierarchy::Ids>> Hierarchy::exchange(Communicator& all, const Ids& own) {
  std::vector<Ids> ids(static_cast<std::size_t>(all.size()));
  CollectiveOptions options;
  options.delivery = exact(all.options().join_timeout);
  const auto report =
      all.all_gather(ConstTensorView(&own, sizeof own, DataType::u8),
                     TensorView(ids.data(), ids.size() * sizeof(Ids), DataType::u8), options);
  if (!report.ok()) return report.status();
  return ids;
}

Status Hierarchy::join_inner(const Parts& parts) {
  const auto own = own_ids(parts);
  const auto ids = exchange(*parts.all, own.ok() ? *own : Ids());
  if (!own.ok()) return own.status();
  if (!ids.ok()) return ids.status();
  const device::Driver& driver = stager()->driver();
  const auto context = device::context_of(driver, parts.device);
  if (!context.ok()) return context.status();
  const device::ContextScope scope(driver, context->context);
  const auto end = std::chrono::steady_clock::now() + parts.all->options().join_timeout;
  const auto stop = [&] {
    return watch_->alarmed() || parts.all->state() != StatusCode::kOk ||
           std::chrono::steady_clock::now() > end;
  };
  Status status;
  if (nodes_) {
    const auto leader = static_cast<std::size_t>(nodes_->rank_of(nodes_->node, 0));
    inside_ = std::make_shared<Inner>(real_);
    status = inside_->join((*ids)[leader].inside, nodes_->each, nodes_->local, parts.config, stop);
  }
  const bool single = nodes_ && nodes_->single();
  if (single) everywhere_ = inside_;
  if (!status.ok() || single || !parts.plan.everywhere) return status;
  everywhere_ = std::make_shared<Inner>(real_);
  return everywhere_->join(ids->front().everywhere, parts.all->size(), parts.all->rank(),
                           parts.config, stop);
}

// Before 2.28 NCCL had no functions of these.
bool Hierarchy::can_forward(Kind kind) const {
  switch (kind) {
    case Kind::all_to_all:
      return real_.call.AlltoAll != nullptr;
    case Kind::gather:
      return real_.call.Gather != nullptr;
    case Kind::scatter:
      return real_.call.Scatter != nullptr;
    default:
      return true;
  }
}

bool Hierarchy::goes_everywhere(const Operation& operation) const {
  const bool meant = everywhere_ == inside_ || operation.by_nccl;
  return everywhere_ != nullptr && meant && can_forward(operation.kind);
}

Hierarchy::Route Hierarchy::route_of(const Operation& operation) const {
  if (goes_everywhere(operation)) return Route::forwarded;
  if (!nodes_ || nodes_->single()) return Route::flat;
  if (is_message(operation.kind))
    return nodes_->local_of(static_cast<int>(operation.peer)) < 0 ? Route::flat : Route::forwarded;
  return has_hops(operation, *nodes_) ? Route::hops : Route::flat;
}

std::shared_ptr<Inner> Hierarchy::inner_of(const Operation& operation) const {
  return goes_everywhere(operation) ? everywhere_ : inside_;
}

InnerCall Hierarchy::call_of(const Operation& operation) const {
  const int peer = static_cast<int>(operation.peer);
  return inner_call(operation, goes_everywhere(operation) ? peer : nodes_->local_of(peer));
}

std::shared_ptr<Communicator> Hierarchy::between() {
  const std::lock_guard lock(mutex_);
  return between_;
}

Result<Hierarchy::Aside> Hierarchy::aside(const device::Driver& driver) {
  const std::lock_guard lock(mutex_);
  auto code = device::cuda::kSuccess;
  if (aside_.stream == nullptr)
    code =
        driver.call.cuStreamCreateWithPriority(&aside_.stream, device::cuda::kStreamNonBlocking, 0);
  if (code == device::cuda::kSuccess && aside_.event == nullptr)
    code = driver.call.cuEventCreate(&aside_.event, device::cuda::kEventWithoutTiming);
  if (code != device::cuda::kSuccess) return driver.error("a stream for messages", code);
  return aside_;
}

Status Hierarchy::state() const {
  for (const auto& inner : {inside_, everywhere_}) {
    if (inner == nullptr) continue;
    if (Status status = inner->state(); !status.ok()) return status;
  }
  return Status();
}

void Hierarchy::begin_abort() {
  {
    const std::lock_guard lock(mutex_);
    if (end_ != End::none) return;
    end_ = End::begun;
  }
  run_behind("abort a communicator", [self = shared_from_this()] { self->abort_all(); });
}

void Hierarchy::abort_inner() {
  for (const auto& inner : {inside_, everywhere_}) {
    if (inner != nullptr) inner->begin_abort();
  }
}

// Leeway's first: a stream that NVIDIA's kernels let go must find no hop between nodes to bring its
// half of a sum to. Streams that wait for Leeway are held back by let_go().
void Hierarchy::abort_all() {
  if (const auto between = this->between(); between != nullptr) between->abort();
  if (const auto all = all_.lock(); all != nullptr) all->abort();
  abort_inner();
  watch_->raise();
  for (const auto& inner : {inside_, everywhere_}) {
    if (inner != nullptr) (void)inner->wait_aborted(kAbortPatience);
  }
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    end_ = End::done;
    waiting = std::exchange(waiting_, {});
  }
  changed_.notify_all();
  for (const auto& one : waiting) one();
}

void Hierarchy::let_go(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (end_ == End::begun) return waiting_.push_back(std::move(then));
  }
  then();
}

void Hierarchy::wait_let_go() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return end_ != End::begun; });
}

void Hierarchy::leave(bool at_exit) {
  for (const auto& inner : {inside_, everywhere_}) {
    if (inner != nullptr && !at_exit) inner->leave();
  }
  if (aside_.stream != nullptr && !at_exit) {
    const device::Driver& driver = stager()->driver();
    (void)driver.call.cuStreamDestroy(aside_.stream);
    (void)driver.call.cuEventDestroy(aside_.event);
  }
  watch_->leave();
  std::shared_ptr<Communicator> between;
  {
    const std::lock_guard lock(mutex_);
    between = std::exchange(between_, nullptr);
  }
  between.reset();
}

}  // namespace leeway::nccl
