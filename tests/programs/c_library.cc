// Calls the C interface, leeway/c.h. Programs for it use no allocate(), which C does not have.
#include <cstdio>
#include <thread>

#include "leeway/c.h"
#include "programs/library.h"

namespace leeway::programs {
namespace {

Status status_of(leeway_status code) {
  if (code == LEEWAY_OK) return Status();
  return Status::error(static_cast<StatusCode>(code), "%s", leeway_last_error());
}

leeway_collective_options options_of_call(const Call& call, leeway_scalar& factor) {
  leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  const CollectiveOptions wanted = options_of(*call.step, call.rank);
  options.op = static_cast<leeway_op>(wanted.op);
  options.delivery = static_cast<leeway_delivery>(wanted.delivery.kind);
  options.deadline_ns = wanted.delivery.deadline.count();
  options.loss_max = wanted.delivery.loss_max;
  options.estimator = static_cast<leeway_estimator>(wanted.estimator);
  options.spread = static_cast<leeway_delivery>(wanted.spread);
  thread_local leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
  codec.codec = static_cast<leeway_codec>(wanted.codec.codec);
  if (wanted.codec.codec != Codec::native) options.codec = &codec;
  options.confirm_use = wanted.confirm_use ? 1 : 0;
  if (wanted.op == ReduceOp::premul_sum) {
    factor.type = LEEWAY_I64;
    factor.value.i64 = factor_of(*call.step, call.rank);
    options.factor = &factor;
  }
  return options;
}

CollectiveReport report_of(const leeway_report* report) {
  CollectiveReport said;
  leeway_report_summary summary = LEEWAY_REPORT_SUMMARY_INIT;
  if (leeway_report_get(report, &summary) != LEEWAY_OK) return said;
  said.sequence = summary.sequence;
  said.loss = summary.loss;
  said.loss_first_pass = summary.loss_first_pass;
  said.elements_missing = summary.elements_missing;
  said.deadline_cut = summary.deadline_cut != 0;
  said.complete = summary.complete != 0;
  said.variance_estimate = summary.variance_estimate;
  said.contributors.mean = summary.contributors_mean;
  for (std::size_t i = 0; i < summary.peer_count; ++i) {
    leeway_peer_report peer = LEEWAY_PEER_REPORT_INIT;
    (void)leeway_report_peer(report, i, &peer);
    said.peers.push_back({.rank = peer.rank,
                          .expected = peer.expected,
                          .arrived = peer.arrived,
                          .repaired = peer.repaired});
  }
  for (std::size_t i = 0; i < summary.message_count; ++i) {
    leeway_message_report message = LEEWAY_MESSAGE_REPORT_INIT;
    (void)leeway_report_message(report, i, &message);
    said.messages.push_back({.source = message.source, .tag = message.tag, .count = message.count});
  }
  return said;
}

class Report {
 public:
  Report() { (void)leeway_report_create(&report_); }
  ~Report() { leeway_report_free(report_); }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  leeway_report* get() const { return report_; }
  Outcome outcome(leeway_status code) const {
    const Status status = status_of(code);
    if (!status.ok()) return status;
    return report_of(report_);
  }

 private:
  leeway_report* report_ = nullptr;
};

class CFlight final : public Flight {
 public:
  CFlight(leeway_work* work, const Status& refused) : work_(work), refused_(refused) {}
  ~CFlight() override { leeway_work_free(work_); }
  bool test() override { return work_ == nullptr || leeway_work_test(work_) != 0; }
  // C has no wait with a time limit.
  bool wait_for(Duration) override { return test(); }
  Outcome wait() override {
    if (work_ == nullptr) return refused_;
    const Report report;
    return report.outcome(leeway_work_wait(work_, report.get()));
  }
  void on_done(std::function<void()> callback) override {
    if (work_ == nullptr) return callback();
    callback_ = std::move(callback);
    (void)leeway_work_on_done(
        work_, [](void* user) { static_cast<CFlight*>(user)->callback_(); }, this);
  }

 private:
  leeway_work* const work_;
  const Status refused_;
  std::function<void()> callback_;
};

leeway_const_tensor reading(const ConstTensorView& view) {
  return {view.data, view.count, static_cast<leeway_data_type>(view.dtype)};
}
leeway_tensor writing(const TensorView& view) {
  return {view.data, view.count, static_cast<leeway_data_type>(view.dtype)};
}

// Makes a step's call. The type of `last` chooses the form: a report (blocking) or a handle
// (asynchronous).
template <typename Last>
leeway_status submit(leeway_communicator* comm, const Call& call, Last last) {
  constexpr bool kWork = std::is_same_v<Last, leeway_work**>;
  const Step& step = *call.step;
  leeway_scalar factor{};
  leeway_collective_options options = options_of_call(call, factor);
  const leeway_const_tensor in = reading(call.input);
  const leeway_tensor out = writing(call.output);
  const auto root = static_cast<leeway_rank>(step.root);
  const bool blocks = step.uneven || step.displaced;
  const Extent& extent = *call.extent;
  const leeway_blocks in_blocks{extent.input_counts.data(), extent.input_begins.data()};
  const leeway_blocks out_blocks{extent.output_counts.data(), extent.output_begins.data()};
  const auto pick = [](auto blocking, auto twin) {
    if constexpr (kWork) {
      return twin;
    } else {
      return blocking;
    }
  };
  switch (step.kind) {
    case Kind::all_reduce:
      return pick(leeway_all_reduce, leeway_all_reduce_async)(comm, in, out, &options, last);
    case Kind::reduce_scatter:
      if (blocks)
        return pick(leeway_reduce_scatter_uneven, leeway_reduce_scatter_uneven_async)(
            comm, in, in_blocks, out, &options, last);
      return pick(leeway_reduce_scatter, leeway_reduce_scatter_async)(comm, in, out, &options,
                                                                      last);
    case Kind::all_gather:
      if (blocks)
        return pick(leeway_all_gather_uneven, leeway_all_gather_uneven_async)(
            comm, in, out, out_blocks, &options, last);
      return pick(leeway_all_gather, leeway_all_gather_async)(comm, in, out, &options, last);
    case Kind::broadcast:
      return pick(leeway_broadcast, leeway_broadcast_async)(comm, out, root, &options, last);
    case Kind::reduce:
      return pick(leeway_reduce, leeway_reduce_async)(comm, in, out, root, &options, last);
    case Kind::gather:
      return pick(leeway_gather, leeway_gather_async)(comm, in, out, root, &options, last);
    case Kind::scatter:
      return pick(leeway_scatter, leeway_scatter_async)(comm, in, out, root, &options, last);
    case Kind::all_to_all:
      if (blocks)
        return pick(leeway_all_to_all_uneven, leeway_all_to_all_uneven_async)(
            comm, in, in_blocks, out, out_blocks, &options, last);
      return pick(leeway_all_to_all, leeway_all_to_all_async)(comm, in, out, &options, last);
    case Kind::barrier:
      return pick(leeway_barrier, leeway_barrier_async)(comm, options.deadline_ns, last);
    case Kind::exchange: {
      std::vector<leeway_message> messages;
      for (const Message& one : call.messages) {
        const bool sends = one.kind == Message::Kind::send;
        leeway_message& c = messages.emplace_back(leeway_message LEEWAY_MESSAGE_INIT);
        c.kind = sends ? LEEWAY_SEND : LEEWAY_RECV;
        c.dtype = static_cast<leeway_data_type>(sends ? one.input.dtype : one.output.dtype);
        c.data = sends ? const_cast<void*>(one.input.data) : one.output.data;
        c.count = sends ? one.input.count : one.output.count;
        c.peer = one.peer;
        c.tag = one.tag;
      }
      return pick(leeway_exchange, leeway_exchange_async)(comm, messages.data(), messages.size(),
                                                          &options, last);
    }
    default: {
      const Message& one = call.messages.front();
      options.tag = one.tag;
      if (one.kind == Message::Kind::send)
        return pick(leeway_send, leeway_send_async)(comm, reading(one.input), one.peer, &options,
                                                    last);
      return pick(leeway_recv, leeway_recv_async)(comm, writing(one.output), one.peer, &options,
                                                  last);
    }
  }
}

class CComm final : public Comm {
 public:
  explicit CComm(leeway_communicator* communicator) : communicator_(communicator) {}
  ~CComm() override { leeway_communicator_free(communicator_); }

  Outcome run(const Call& call) override {
    const Report report;
    if (call.step->kind == Kind::wrong) {
      float values[4] = {};
      return report.outcome(leeway_broadcast(communicator_, {values, 4, LEEWAY_F32},
                                             static_cast<leeway_rank>(call.size), nullptr,
                                             report.get()));
    }
    return report.outcome(submit(communicator_, call, report.get()));
  }
  std::unique_ptr<Flight> start(const Call& call) override {
    leeway_work* work = nullptr;
    const Status refused = status_of(submit(communicator_, call, &work));
    return std::make_unique<CFlight>(work, refused);
  }
  Result<std::unique_ptr<Comm>> split(int color, int key, Way::How how) override {
    if (how != Way::How::blocking) {
      leeway_pending* pending = nullptr;
      const leeway_status status = leeway_split_async(communicator_, color, key, &pending);
      return finished(status, pending, how);
    }
    leeway_communicator* made = nullptr;
    const leeway_status status = leeway_split(communicator_, color, key, &made);
    return wrapped(status, made);
  }
  Result<std::unique_ptr<Comm>> shrink(std::span<const Rank> excluded, Way::How how) override {
    if (how != Way::How::blocking) {
      leeway_pending* pending = nullptr;
      const leeway_status status =
          leeway_shrink_async(communicator_, excluded.data(), excluded.size(), &pending);
      return finished(status, pending, how);
    }
    leeway_communicator* made = nullptr;
    const leeway_status status =
        leeway_shrink(communicator_, excluded.data(), excluded.size(), &made);
    return wrapped(status, made);
  }
  Result<MutableByteSpan> allocate(std::size_t) override {
    return Status::error(StatusCode::kUnsupported, "C has no allocate()");
  }
  void abort() override { (void)leeway_abort(communicator_); }
  int rank() const override { return leeway_rank_of(communicator_); }
  int size() const override { return leeway_size_of(communicator_); }

  static Result<std::unique_ptr<Comm>> wrapped(leeway_status code, leeway_communicator* made) {
    if (code != LEEWAY_OK) return status_of(code);
    if (made == nullptr) return std::unique_ptr<Comm>();
    return std::unique_ptr<Comm>(std::make_unique<CComm>(made));
  }
  static Result<std::unique_ptr<Comm>> finished(leeway_status code, leeway_pending* pending,
                                                Way::How how) {
    if (code != LEEWAY_OK) return status_of(code);
    if (how == Way::How::polled)
      while (leeway_pending_done(pending) == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    leeway_communicator* made = nullptr;
    const leeway_status status = leeway_pending_wait(pending, &made);
    auto outcome = wrapped(status, made);
    leeway_pending_free(pending);
    return outcome;
  }

 private:
  leeway_communicator* const communicator_;
};

class CLibrary final : public Library {
 public:
  explicit CLibrary(std::string secret_file) : secret_file_(std::move(secret_file)) {}
  Result<std::unique_ptr<Comm>> create(const Options& options, Way::How how) override {
    const std::string faults = faults_of(options);
    const leeway_options c = c_options(options, faults);
    if (how != Way::How::blocking) {
      leeway_pending* pending = nullptr;
      const leeway_status status = leeway_create_async(&c, &pending);
      return CComm::finished(status, pending, how);
    }
    leeway_communicator* made = nullptr;
    const leeway_status status = leeway_create(&c, &made);
    return CComm::wrapped(status, made);
  }
  Result<std::vector<std::unique_ptr<Comm>>> create_inproc(int size,
                                                           const Options& options) override {
    const std::string faults = faults_of(options);
    leeway_options c = c_options(options, faults);
    c.rank = c.world_size = -1;
    std::vector<leeway_communicator*> made(static_cast<std::size_t>(size));
    const Status status = status_of(leeway_create_inproc(size, &c, made.data()));
    if (!status.ok()) return status;
    std::vector<std::unique_ptr<Comm>> all;
    for (leeway_communicator* one : made) all.push_back(std::make_unique<CComm>(one));
    return all;
  }
  std::shared_ptr<void> join(const Options& options) override {
    const std::string faults = faults_of(options);
    const leeway_options c = c_options(options, faults);
    leeway_pending* pending = nullptr;
    (void)leeway_create_async(&c, &pending);
    return {pending, leeway_pending_free};
  }

 private:
  static std::string faults_of(const Options& options) {
    if (!options.faults.any()) return {};
    char text[160];
    std::snprintf(text, sizeof text, "loss=%g,burst=%g,dup=%g,reorder=%g,corrupt=%g,seed=%llu",
                  options.faults.loss, options.faults.burst, options.faults.duplicate,
                  options.faults.reorder, options.faults.corrupt,
                  static_cast<unsigned long long>(options.faults.seed));
    return text;
  }
  leeway_options c_options(const Options& options, const std::string& faults) const {
    leeway_options c = LEEWAY_OPTIONS_INIT;
    c.rank = options.rank.value_or(-1);
    c.world_size = options.world_size.value_or(-1);
    c.rendezvous = options.rendezvous.c_str();
    c.transport = static_cast<leeway_transport>(options.transport);
    c.bind_address = options.bind_address.c_str();
    c.peer_timeout_ns = options.peer_timeout.count();
    c.seed = options.seed;
    c.faults = faults.c_str();
    c.log_level = options.log_level.c_str();
    c.communicator_name = options.communicator_name.c_str();
    c.secret_file = secret_file_.c_str();
    c.site = options.site.c_str();
    c.lanes = options.lanes;
    return c;
  }

  const std::string secret_file_;
};

}  // namespace

std::unique_ptr<Library> c_library(const Meeting& meeting, bool sealed) {
  return std::make_unique<CLibrary>(sealed ? meeting.secret_file : "");
}

}  // namespace leeway::programs
