// Making and ending a group, and calls that are combined into one.
#include "backend.h"

#include <cstdlib>
#include <future>
#include <iterator>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "arguments.h"
#include "store_rendezvous.h"

namespace leeway::torch_backend {

namespace {

// Like Communicator::create(), but throws the exception of a signal's handler. So Ctrl-C ends it.
Result<std::unique_ptr<Communicator>> join(const leeway::Options& options) {
  const auto done = std::make_shared<std::promise<void>>();
  PendingCommunicator pending = Communicator::create_async(options);
  pending.on_done([done] { done->set_value(); });
  const std::future<void> ended = done->get_future();
  while (ended.wait_for(kSlice) != std::future_status::ready) look_at_signals();
  return pending.wait();
}

// Limits times to 73 years, so that sums with the clock stay in range.
Duration in_nanoseconds(std::chrono::milliseconds time) {
  constexpr Duration kLongest = no_deadline / 4;
  return time < std::chrono::duration_cast<std::chrono::milliseconds>(kLongest) ? Duration(time)
                                                                                : kLongest;
}

// All groups of this process. The object is never destroyed, because a group may outlive it.
struct Living {
  std::mutex mutex;
  std::set<LeewayBackend*> all;
};
Living& living() {
  static auto* const made = new Living;
  return *made;
}

}  // namespace

LeewayBackend::LeewayBackend(std::unique_ptr<Communicator> communicator,
                             c10::intrusive_ptr<BackendOptions> options, std::string name)
    : c10d::Backend(communicator->rank(), communicator->size()),
      communicator_(std::move(communicator)),
      options_(std::move(options)),
      name_(std::move(name)) {
  const std::lock_guard lock(living().mutex);
  living().all.insert(this);
}

LeewayBackend::~LeewayBackend() {
  {
    const std::lock_guard lock(living().mutex);
    living().all.erase(this);
  }
  shutdown();
}

void LeewayBackend::shutdown_all() {
  const std::lock_guard lock(living().mutex);
  std::vector<std::thread> leaving;
  try {
    for (LeewayBackend* const one : living().all) leaving.emplace_back([one] { one->shutdown(); });
  } catch (const std::system_error&) {  // no thread can be started: other groups are not left
  }
  for (std::thread& thread : leaving) thread.join();
}

c10::intrusive_ptr<LeewayBackend> LeewayBackend::create(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, const std::string& group,
    std::chrono::milliseconds timeout, c10::intrusive_ptr<BackendOptions> options,
    std::string name) {
  auto made = value_of(leeway::Options::from_environment(leeway::Options::Membership::from_caller));
  made.rank = rank;
  made.world_size = size;
  made.store = std::make_shared<StoreRendezvous>(store);
  made.communicator_name = group;
  if (timeout.count() > 0) made.join_timeout = in_nanoseconds(timeout);
  // Selects the local address for data: the one that routes to MASTER_ADDR. With port 0 rank 0
  // listens at a port that the system chooses, and the store carries only that address.
  const char* const host = std::getenv("MASTER_ADDR");
  if (made.rendezvous.empty() && host != nullptr && *host != '\0') {
    const std::string name_of_host(host);
    made.rendezvous =
        (name_of_host.find(':') == std::string::npos ? name_of_host : "[" + name_of_host + "]") +
        ":0";
  }
  if (!options) options = c10::make_intrusive<BackendOptions>(name);
  options->timeout = timeout;
  return c10::make_intrusive<LeewayBackend>(value_of(join(made)), std::move(options),
                                            std::move(name));
}

Communicator& LeewayBackend::communicator() const {
  TORCH_CHECK_WITH(DistBackendError, communicator_ != nullptr,
                   "leeway: the process group was shut down");
  return *communicator_;
}

c10d::ErrorType LeewayBackend::getError() {
  if (communicator_ == nullptr) return c10d::ErrorType::SUCCESS;
  switch (communicator_->state()) {
    case StatusCode::kOk:
      return c10d::ErrorType::SUCCESS;
    case StatusCode::kDeadlineExceeded:
      return c10d::ErrorType::TIMEOUT;
    case StatusCode::kPeerLost:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

void LeewayBackend::abort() {
  if (communicator_ != nullptr) communicator_->abort();
}

void LeewayBackend::shutdown() {
  communicator_.reset();
}

Duration LeewayBackend::deadline(std::chrono::milliseconds timeout) const {
  return in_nanoseconds(timeout.count() > 0 ? timeout : options_->timeout);
}

CollectiveOptions LeewayBackend::copying(std::chrono::milliseconds timeout) const {
  CollectiveOptions options;
  options.delivery = exact(deadline(timeout));
  return options;
}

Call LeewayBackend::begin(c10d::OpType type, const char* title, Tensors inputs) {
  Call call;
  call.type = type;
  call.title = name_ + ":" + title;
  call.sequence = ++sequence_;
  call.inputs = std::move(inputs);
  return call;
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::issue(Call call) {
  if (!coalesced_) return c10::make_intrusive<CallWork>(getRank(), std::move(call));
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(coalesced_->works, call.works);
  append(coalesced_->kept, call.kept);
  append(coalesced_->kept, call.inputs);
  append(coalesced_->outputs, call.outputs);
  if (call.after) coalesced_after_.push_back(std::move(call.after));
  return nullptr;
}

void LeewayBackend::startCoalescing() {
  coalesced_ = begin(c10d::OpType::COALESCED, "coalesced", {});
  coalesced_after_.clear();
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::endCoalescing() {
  TORCH_CHECK(coalesced_, "endCoalescing() without startCoalescing()");
  Call call = std::move(*coalesced_);
  coalesced_.reset();
  call.after = [all = std::exchange(coalesced_after_, {})] {
    for (const auto& after : all) after();
  };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::coalesced(const std::function<void()>& calls) {
  startCoalescing();
  try {
    calls();
  } catch (...) {
    coalesced_.reset();
    coalesced_after_.clear();
    throw;
  }
  return endCoalescing();
}

}  // namespace leeway::torch_backend
