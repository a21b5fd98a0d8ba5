#include "interop/nccl/comm.h"

#include <utility>

#include "base/thread.h"
#include "interop/nccl/context.h"
#include "interop/nccl/debug.h"
#include "interop/nccl/devices.h"
#include "interop/nccl/joining.h"

namespace leeway::nccl {
namespace {

// Returns true for errors that end the communicator. Wrong arguments or usage end only the call.
bool is_final(Code code) {
  return code != kSuccess && code != kInProgress && code != kInvalidArgument &&
         code != kInvalidUsage;
}

std::size_t tensor_bytes(const Operation& operation, int size) {
  const std::size_t block = operation.count * size_of(operation.type);
  return operation.kind == Kind::reduce_scatter ? block * static_cast<std::size_t>(size) : block;
}

}  // namespace

bool Comm::enter(Phase phase) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::aborted) return false;
    phase_ = phase;
  }
  changed_.notify_all();
  return true;
}

void Comm::fail(const Status& status) {
  if (set_failure(code_of(status.code(), settings().version), status.text())) warn(status.text());
}

bool Comm::set_failure(Code code, std::string_view why) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::joining) phase_ = Phase::failed;
    if (failure_ == kSuccess && !revoked_) {
      keep_error(why);  // first, as a caller that polls may ask for the text once failure_ is set
      why_ = std::string(why);
      failure_ = code;
      first = true;
    }
  }
  changed_.notify_all();
  return first;
}

void Comm::begin(PendingCommunicator pending, std::shared_ptr<Place> place) {
  ordinal_ = Context::get().communicators++;
  place_ = std::move(place);
  pending_ = std::move(pending);
  pending_.on_done([self = shared_from_this()] { self->on_joined(); });
}

void Comm::begin(std::unique_ptr<Communicator> communicator) {
  ordinal_ = Context::get().communicators++;
  communicator_ = std::move(communicator);
  compare_facts();
}

void Comm::on_joined() {
  auto made = pending_.wait();
  if (!made.ok()) return fail(made.status());
  if (*made == nullptr) {
    none_ = true;
    (void)enter(Phase::ready);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    communicator_ = std::move(*made);
    if (phase_ == Phase::aborted) return communicator_->abort();
  }
  compare_facts();
}

void Comm::compare_facts() {
  Context& context = Context::get();
  rank_ = communicator_->rank();
  size_ = communicator_->size();
  int first = 0;
  context.world.compare_exchange_strong(first, size_);
  policy_ = context.policy.of({config_.name, size_, context.world, ordinal_});
  own_facts_ = {policy_.fingerprint(), stager() != nullptr ? 1U : 0U};
  facts_.resize(static_cast<std::size_t>(size_));
  constexpr std::size_t kNumbers = sizeof(Facts) / sizeof(std::uint64_t);
  CollectiveOptions options;
  options.delivery = exact(communicator_->options().join_timeout);
  comparing_ = communicator_->all_gather_async(
      ConstTensorView(&own_facts_, kNumbers, DataType::u64),
      TensorView(facts_.data(), kNumbers * facts_.size(), DataType::u64), options);
  comparing_.on_done([self = shared_from_this()] { self->on_compared(); });
}

void Comm::on_compared() {
  const auto report = comparing_.wait();
  if (place_ != nullptr) place_->leave();
  if (!report.ok()) return fail(report.status());
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    staged_ = staged_ || facts_[i].has_driver != 0;
    if (facts_[i].policy == facts_[0].policy) continue;
    return fail(Status::error(
        StatusCode::kMismatch,
        "rank %d: the rules of LEEWAY_NCCL_POLICY for this communicator differ on ranks 0 and %zu; "
        "give all ranks the same policy, commName and order of communicators",
        rank_, i));
  }
  if (const auto communicator = shows(DebugLevel::info) ? hold() : nullptr) {
    info("comm \"" + config_.name + "\" rank " + std::to_string(rank_) + " nranks " +
         std::to_string(size_) + ": " + way_of(*communicator));
  }
  (void)enter(Phase::ready);
}

Code Comm::wait_ready() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::joining; });
  if (failure_ == kSuccess) return kSuccess;
  keep_error(why_);  // again, as a later failure of another Comm may have replaced the text
  return static_cast<Code>(failure_.load());
}

void Comm::look_inside() {
  std::shared_ptr<Communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != kSuccess || revoked_) return;
    if (phase_ == Phase::ready) communicator = communicator_;
  }
  if (communicator != nullptr && communicator->state() != StatusCode::kOk)
    fail(communicator->status());
}

Code Comm::state() {
  look_inside();
  const std::lock_guard lock(mutex_);
  if (const int failure = failure_; failure != kSuccess) return static_cast<Code>(failure);
  if (phase_ == Phase::joining || phase_ == Phase::leaving || under_way_ > 0) return kInProgress;
  return kSuccess;
}

Code Comm::usable(std::string_view title) {
  const int length = static_cast<int>(title.size());
  look_inside();
  std::unique_lock lock(mutex_);
  if (failure_ == kSuccess && phase_ == Phase::ready && under_way_ == 0 && !revoked_)
    return kSuccess;
  if (failure_ != kSuccess) {
    const std::string why = why_;
    lock.unlock();
    return failed_with(static_cast<Code>(failure_.load()), "%.*s : the communicator failed: %s",
                       length, title.data(), why.c_str());
  }
  if (revoked_) {
    return failed_with(kInvalidUsage, "%.*s : the communicator was revoked", length, title.data());
  }
  if (phase_ == Phase::leaving || phase_ == Phase::left) {
    return failed_with(kInvalidArgument, "%.*s : the communicator was finalized", length,
                       title.data());
  }
  return failed_with(kInvalidArgument,
                     "%.*s : the communicator is not ready: an earlier call is in progress; poll "
                     "ncclCommGetAsyncError until it is not ncclInProgress",
                     length, title.data());
}

Status Comm::gone() {
  const std::lock_guard lock(mutex_);
  if (failure_ != kSuccess) return Status::error(StatusCode::kUnsupported, "%s", why_.c_str());
  return Status::error(StatusCode::kInvalidArgument, "the communicator %s",
                       phase_ == Phase::joining ? "is not ready" : "was finalized");
}

bool Comm::met() {
  const std::lock_guard lock(mutex_);
  return size_ > 0 && phase_ != Phase::joining;
}

std::shared_ptr<Communicator> Comm::hold() {
  const std::lock_guard lock(mutex_);
  return communicator_;
}

Code Comm::finish(const Operation& operation, const Result<CollectiveReport>& outcome) {
  const Trace& trace = Context::get().trace;
  if (trace.active()) trace.write({config_.name, ordinal_, rank_, size_}, operation, outcome);
  return outcome.ok() ? kSuccess : finish(title_of(operation.kind), outcome.status());
}

Code Comm::finish(std::string_view title, const Status& status) {
  if (status.ok()) return kSuccess;
  const Code code = code_of(status.code(), settings().version);
  if (is_final(code)) (void)set_failure(code, status.text());
  return failed(status, title);
}

void Comm::begin_operation() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void Comm::end_operation() {
  {
    const std::lock_guard lock(mutex_);
    --under_way_;
  }
  changed_.notify_all();
}

void Comm::begin_streaming() {
  const std::lock_guard lock(mutex_);
  ++streaming_;
}

void Comm::end_streaming() {
  {
    const std::lock_guard lock(mutex_);
    --streaming_;
  }
  changed_.notify_all();
}

Result<std::shared_ptr<device::Lane>> Comm::lane() {
  const std::lock_guard lock(mutex_);
  if (lane_ != nullptr) return lane_;
  auto opened = stager()->open(device_);
  if (!opened.ok()) return opened.status();
  // If abort() or revoke() came first, it found no lane to end, so the lane is ended here.
  if (phase_ == Phase::aborted || revoked_) stager()->end(**opened);
  lane_ = *opened;
  return lane_;
}

std::shared_ptr<device::Lane> Comm::lane_if_made() {
  const std::lock_guard lock(mutex_);
  return lane_;
}

void Comm::free_streams() {
  const std::shared_ptr<device::Lane> lane = lane_if_made();
  if (lane != nullptr && stager() != nullptr) stager()->end(*lane);
}

void Comm::decide(Operation& operation) const {
  CollectiveOptions& options = operation.options;
  options.delivery = exact(settings().timeout);
  const CollectiveOptions* const rule =
      policy_.find(operation.kind, options.op, operation.type, tensor_bytes(operation, size_));
  if (rule == nullptr) return;
  if (rule->delivery.kind != Delivery::Kind::exact) options.delivery = rule->delivery;
  options.codec = rule->codec;
  options.estimator = rule->estimator;
}

void Comm::begin_leaving() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::leaving || phase_ == Phase::left || phase_ == Phase::aborted) return;
    phase_ = Phase::leaving;
  }
  run_behind("leave a communicator", [self = shared_from_this()] { self->leave(); });
}

void Comm::leave() {
  std::shared_ptr<Communicator> communicator;
  std::vector<std::shared_ptr<Communicator>> met;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return quiet() || failure_ != kSuccess; });
    communicator = std::exchange(communicator_, nullptr);
    met.swap(met_);
  }
  free_streams();
  registrations.clear();
  if (communicator != nullptr && failure_ != kSuccess) communicator->abort();
  communicator.reset();
  met.clear();
  (void)enter(Phase::left);
}

void Comm::wait_left() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::leaving; });
}

void Comm::wait_left_until(std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, end, [this] { return phase_ != Phase::leaving; });
}

void Comm::abort() {
  std::shared_ptr<Communicator> communicator;
  std::vector<std::shared_ptr<Communicator>> met;
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::aborted;
    if (failure_ == kSuccess) {
      failure_ = kInternalError;
      why_ = "the communicator was aborted by this process";
    }
    communicator = std::exchange(communicator_, nullptr);
    met.swap(met_);
  }
  changed_.notify_all();
  for (const auto& one : met) one->abort();
  meeting_.abort();
  pending_.abort();
  if (communicator != nullptr) communicator->abort();
  free_streams();
}

void Comm::end_operations() {
  if (const auto communicator = hold(); communicator != nullptr) communicator->abort();
  free_streams();
}

Code Comm::revoke() {
  {
    const std::lock_guard lock(mutex_);
    if (revoked_ || phase_ != Phase::ready) {
      const char* const what = revoked_                   ? "was revoked before"
                               : phase_ == Phase::joining ? "is not ready"
                               : phase_ == Phase::failed  ? "failed to be made"
                                                          : "was finalized";
      return failed_with(kInvalidArgument, "CommRevoke : the communicator %s", what);
    }
    revoked_ = true;
    failure_ = kSuccess;
    why_.clear();
    ++under_way_;
  }
  end_operations();
  end_operation();
  if (!blocking()) return state();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return quiet(); });
  return kSuccess;
}

bool Comm::revoked() {
  const std::lock_guard lock(mutex_);
  return revoked_;
}

Code Comm::splittable(std::string_view title) {
  return revoked() && state() == kSuccess ? kSuccess : usable(title);
}

void Comm::split_into(const std::shared_ptr<Comm>& child, int color, int key) {
  const std::shared_ptr<Communicator> communicator = hold();
  if (communicator == nullptr) return child->fail(gone());
  if (!revoked()) return child->begin(communicator->split_async(color, key));
  child->meeting_ = communicator->shrink_async({});
  child->meeting_.on_done([self = shared_from_this(), child, color, key] {
    auto made = child->meeting_.wait();
    if (!made.ok()) return child->fail(made.status());
    const std::shared_ptr<Communicator> met = std::move(*made);
    {
      const std::lock_guard lock(self->mutex_);
      self->met_.push_back(met);
    }
    child->begin(met->split_async(color, key));
  });
}

}  // namespace leeway::nccl
