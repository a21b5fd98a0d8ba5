// Calls the C++ interface, leeway/communicator.h.
#include <thread>

#include "programs/library.h"

namespace leeway::programs {
namespace {

class CppFlight final : public Flight {
 public:
  explicit CppFlight(Work work) : work_(std::move(work)) {}
  bool test() override { return work_.test(); }
  bool wait_for(Duration patience) override { return work_.wait_for(patience); }
  Outcome wait() override { return work_.wait(); }
  void on_done(std::function<void()> callback) override { work_.on_done(std::move(callback)); }

 private:
  Work work_;
};

class CppComm final : public Comm {
 public:
  explicit CppComm(std::unique_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  Outcome run(const Call& call) override;
  std::unique_ptr<Flight> start(const Call& call) override;
  Result<std::unique_ptr<Comm>> split(int color, int key, Way::How how) override {
    if (how == Way::How::blocking) return wrapped(communicator_->split(color, key));
    return finished(communicator_->split_async(color, key), how);
  }
  Result<std::unique_ptr<Comm>> shrink(std::span<const Rank> excluded, Way::How how) override {
    if (how == Way::How::blocking) return wrapped(communicator_->shrink(excluded));
    return finished(communicator_->shrink_async(excluded), how);
  }
  Result<MutableByteSpan> allocate(std::size_t bytes) override {
    auto made = communicator_->allocate(bytes);
    if (!made.ok()) return made.status();
    memory_.push_back(std::move(*made));
    return memory_.back().as<std::byte>();
  }
  void abort() override { communicator_->abort(); }
  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }

  static Result<std::unique_ptr<Comm>> wrapped(Result<std::unique_ptr<Communicator>> made) {
    if (!made.ok()) return made.status();
    if (*made == nullptr) return std::unique_ptr<Comm>();
    return std::unique_ptr<Comm>(std::make_unique<CppComm>(std::move(*made)));
  }
  static Result<std::unique_ptr<Comm>> finished(PendingCommunicator pending, Way::How how) {
    if (how == Way::How::polled)
      while (!pending.done()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (how == Way::How::called) {
      std::atomic<bool> done = false;
      pending.on_done([&done] {
        done = true;
        done.notify_all();
      });
      done.wait(false);
    }
    return wrapped(pending.wait());
  }

 private:
  // Destroyed after communicator_, which is declared below: memory may outlive its communicator.
  std::vector<Allocation> memory_;
  std::unique_ptr<Communicator> communicator_;
};

Outcome CppComm::run(const Call& call) {
  const Step& step = *call.step;
  const CollectiveOptions options = options_of(step, call.rank);
  const auto root = static_cast<Rank>(step.root);
  const bool in_one = call.input.data == call.output.data && call.output.count == call.input.count;
  switch (step.kind) {
    case Kind::all_reduce:
      if (in_one && step.in_place) return communicator_->all_reduce(call.output, options);
      return communicator_->all_reduce(call.input, call.output, options);
    case Kind::reduce_scatter:
      if (!step.uneven && !step.displaced)
        return communicator_->reduce_scatter(call.input, call.output, options);
      return communicator_->reduce_scatter(
          call.input, Blocks(call.extent->input_counts, call.extent->input_begins), call.output,
          options);
    case Kind::all_gather:
      if (!step.uneven && !step.displaced)
        return communicator_->all_gather(call.input, call.output, options);
      return communicator_->all_gather(
          call.input, call.output, Blocks(call.extent->output_counts, call.extent->output_begins),
          options);
    case Kind::broadcast:
      return communicator_->broadcast(call.output, root, options);
    case Kind::reduce:
      return communicator_->reduce(call.input, call.output, root, options);
    case Kind::gather:
      return communicator_->gather(call.input, call.output, root, options);
    case Kind::scatter:
      return communicator_->scatter(call.input, call.output, root, options);
    case Kind::all_to_all:
      if (!step.uneven && !step.displaced)
        return communicator_->all_to_all(call.input, call.output, options);
      return communicator_->all_to_all(
          call.input, Blocks(call.extent->input_counts, call.extent->input_begins), call.output,
          Blocks(call.extent->output_counts, call.extent->output_begins), options);
    case Kind::barrier:
      return communicator_->barrier(options.delivery.deadline);
    case Kind::message: {
      const Message& one = call.messages.front();
      CollectiveOptions tagged = options;
      tagged.tag = one.tag;
      if (one.kind == Message::Kind::send) return communicator_->send(one.input, one.peer, tagged);
      return communicator_->recv(one.output, one.peer, tagged);
    }
    case Kind::exchange:
      return communicator_->exchange(call.messages, options);
    default:
      return make_wrong_call(*communicator_, step);
  }
}

std::unique_ptr<Flight> CppComm::start(const Call& call) {
  const Step& step = *call.step;
  const CollectiveOptions options = options_of(step, call.rank);
  const auto root = static_cast<Rank>(step.root);
  Communicator& communicator = *communicator_;
  const auto work = [&]() -> Work {
    switch (step.kind) {
      case Kind::all_reduce:
        if (step.in_place) return communicator.all_reduce_async(call.output, options);
        return communicator.all_reduce_async(call.input, call.output, options);
      case Kind::reduce_scatter:
        if (!step.uneven && !step.displaced)
          return communicator.reduce_scatter_async(call.input, call.output, options);
        return communicator.reduce_scatter_async(
            call.input, Blocks(call.extent->input_counts, call.extent->input_begins), call.output,
            options);
      case Kind::all_gather:
        if (!step.uneven && !step.displaced)
          return communicator.all_gather_async(call.input, call.output, options);
        return communicator.all_gather_async(
            call.input, call.output, Blocks(call.extent->output_counts, call.extent->output_begins),
            options);
      case Kind::broadcast:
        return communicator.broadcast_async(call.output, root, options);
      case Kind::reduce:
        return communicator.reduce_async(call.input, call.output, root, options);
      case Kind::gather:
        return communicator.gather_async(call.input, call.output, root, options);
      case Kind::scatter:
        return communicator.scatter_async(call.input, call.output, root, options);
      case Kind::all_to_all:
        if (!step.uneven && !step.displaced)
          return communicator.all_to_all_async(call.input, call.output, options);
        return communicator.all_to_all_async(
            call.input, Blocks(call.extent->input_counts, call.extent->input_begins), call.output,
            Blocks(call.extent->output_counts, call.extent->output_begins), options);
      case Kind::barrier:
        return communicator.barrier_async(options.delivery.deadline);
      case Kind::message: {
        const Message& one = call.messages.front();
        CollectiveOptions tagged = options;
        tagged.tag = one.tag;
        if (one.kind == Message::Kind::send)
          return communicator.send_async(one.input, one.peer, tagged);
        return communicator.recv_async(one.output, one.peer, tagged);
      }
      default:
        return communicator.exchange_async(call.messages, options);
    }
  };
  return std::make_unique<CppFlight>(work());
}

class CppLibrary final : public Library {
 public:
  Result<std::unique_ptr<Comm>> create(const Options& options, Way::How how) override {
    if (how == Way::How::blocking) return CppComm::wrapped(Communicator::create(options));
    return CppComm::finished(Communicator::create_async(options), how);
  }
  Result<std::vector<std::unique_ptr<Comm>>> create_inproc(int size,
                                                           const Options& options) override {
    auto made = Communicator::create_inproc(size, options);
    if (!made.ok()) return made.status();
    std::vector<std::unique_ptr<Comm>> all;
    for (auto& one : *made) all.push_back(std::make_unique<CppComm>(std::move(one)));
    return all;
  }
  std::shared_ptr<void> join(const Options& options) override {
    return std::make_shared<PendingCommunicator>(Communicator::create_async(options));
  }
};

}  // namespace

CollectiveOptions options_of(const Step& step, int rank) {
  CollectiveOptions options;
  if (is_reduction(step.kind)) {
    options.op = step.op;
    if (step.op == ReduceOp::premul_sum) options.factor = factor_of(step, rank);
  }
  const std::uint32_t cut = step.cuts_us[static_cast<std::size_t>(rank)];
  const Duration deadline = cut > 0 ? Duration(std::chrono::microseconds(cut)) : kLongDeadline;
  switch (step.delivery) {
    case Delivery::Kind::exact:
      options.delivery = step.endless && cut == 0 ? exact(no_deadline)
                         : step.is_cut()          ? exact(deadline)
                                                  : exact();
      break;
    case Delivery::Kind::bounded:
      options.delivery = bounded(0.05, deadline);
      break;
    case Delivery::Kind::best_effort:
      options.delivery = best_effort(deadline);
      break;
  }
  options.estimator = step.estimator;
  options.spread = step.spread;
  options.codec = step.codec;
  options.confirm_use = step.confirm_use;
  return options;
}

Outcome make_wrong_call(Communicator& communicator, const Step& step) {
  float values[4] = {1, 2, 3, 4};
  const TensorView view(values, 4, DataType::f32);
  CollectiveOptions options;
  const auto size = static_cast<Rank>(communicator.size());
  switch (step.salt % 10) {
    case 0:
      return communicator.broadcast(view, size, options);
    case 1:
      options.op = ReduceOp::band;
      return communicator.all_reduce(view, options);
    case 2:
      return communicator.reduce_scatter(view, {values, 5, DataType::f32}, options);
    case 3:
      return communicator.send(view, size, options);
    case 4:
      options.tag = 3;
      return communicator.all_reduce(view, options);
    case 5:
      options.estimator = static_cast<Estimator>(kEstimatorCount);
      return communicator.all_reduce(view, options);
    case 6:
      options.delivery.kind = static_cast<Delivery::Kind>(Delivery::kKinds);
      return communicator.all_gather(view, view, options);
    case 7:
      options.op = static_cast<ReduceOp>(kReduceOpCount);
      return communicator.all_reduce(view, options);
    case 8:
      return communicator.all_reduce({values, 4, static_cast<DataType>(kDataTypeCount)}, options);
    default:
      options.weight = 2.0;
      return communicator.broadcast(view, 0, options);
  }
}

std::unique_ptr<Library> cpp_library() {
  return std::make_unique<CppLibrary>();
}

}  // namespace leeway::programs
