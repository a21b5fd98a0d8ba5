// Calls the drop-in's NCCL interface. Tensors lie in host memory, so a blocking communicator's call
// is done when it returns. A non-blocking communicator's call is done when ncclCommGetAsyncError()
// says so.
#include <cstring>
#include <thread>

#include "leeway/rendezvous.h"
#include "nccl/nccl_api.h"
#include "programs/library.h"

namespace leeway::programs {
namespace {

ncclDataType_t type_of(DataType type) {
  constexpr ncclDataType_t kTypes[] = {ncclFloat32, ncclFloat64, ncclFloat16,    ncclBfloat16,
                                       ncclInt8,    ncclInt32,   ncclInt64,      ncclUint8,
                                       ncclUint32,  ncclUint64,  ncclFloat8e4m3, ncclFloat8e5m2};
  return kTypes[static_cast<std::size_t>(type)];
}

// Converts an NCCL code to a Status. All errors but those of wrong usage become kPeerLost, whatever
// their cause. Their texts say whether a peer was lost.
Status status_of(const char* call, ncclResult_t code, ncclComm_t comm) {
  if (code == ncclSuccess) return Status();
  const char* const text = ncclGetLastError(comm);
  const bool usage = code == ncclInvalidArgument || code == ncclInvalidUsage;
  return Status::error(usage ? StatusCode::kInvalidArgument : StatusCode::kPeerLost,
                       "nccl%s answered %d (%s): %s", call, static_cast<int>(code),
                       ncclGetErrorString(code), text == nullptr ? "" : text);
}

// Waits until no call of a non-blocking communicator is in progress. Returns the last code.
ncclResult_t settled(ncclResult_t code, ncclComm_t comm) {
  while (code == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &code);
    if (asked != ncclSuccess) return asked;
  }
  return code;
}

class Finished final : public Flight {
 public:
  explicit Finished(Outcome outcome) : outcome_(std::move(outcome)) {}
  bool test() override { return true; }
  bool wait_for(Duration) override { return true; }
  Outcome wait() override { return outcome_; }
  void on_done(std::function<void()> callback) override { callback(); }

 private:
  const Outcome outcome_;
};

class NcclComm final : public Comm {
 public:
  NcclComm(ncclComm_t comm, bool blocks) : comm_(comm), blocks_(blocks) {}
  ~NcclComm() override {
    if (aborted_) return;
    if (!blocks_) (void)settled(ncclCommFinalize(comm_), comm_);
    (void)ncclCommDestroy(comm_);
  }

  Outcome run(const Call& call) override;
  std::unique_ptr<Flight> start(const Call& call) override {
    return std::make_unique<Finished>(run(call));
  }
  Result<std::unique_ptr<Comm>> split(int color, int key, Way::How how) override {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = how == Way::How::blocking ? 1 : 0;
    ncclComm_t made = nullptr;
    ncclResult_t code = settled(ncclCommSplit(comm_, color, key, &made, &config), comm_);
    if (code == ncclSuccess && made != nullptr)
      code = settled(how == Way::How::blocking ? ncclSuccess : ncclInProgress, made);
    if (code != ncclSuccess) return status_of("CommSplit", code, comm_);
    if (made == nullptr) return std::unique_ptr<Comm>();
    return std::unique_ptr<Comm>(std::make_unique<NcclComm>(made, how == Way::How::blocking));
  }
  Result<std::unique_ptr<Comm>> shrink(std::span<const Rank> excluded, Way::How) override {
    std::vector<int> out(excluded.begin(), excluded.end());
    ncclResult_t state = ncclSuccess;
    (void)ncclCommGetAsyncError(comm_, &state);
    ncclComm_t made = nullptr;
    ncclResult_t code =
        ncclCommShrink(comm_, out.data(), static_cast<int>(out.size()), &made, nullptr,
                       state == ncclSuccess ? NCCL_SHRINK_DEFAULT : NCCL_SHRINK_ABORT);
    code = settled(code, comm_);
    if (code == ncclSuccess && !blocks_) code = settled(ncclInProgress, made);
    if (code != ncclSuccess) return status_of("CommShrink", code, comm_);
    return std::unique_ptr<Comm>(std::make_unique<NcclComm>(made, blocks_));
  }
  Result<MutableByteSpan> allocate(std::size_t) override {
    return Status::error(StatusCode::kUnsupported, "not drawn");
  }
  void abort() override {
    aborted_ = true;
    (void)ncclCommAbort(comm_);
  }
  // Returns -1 if the communicator has failed.
  int rank() const override {
    int rank = -1;
    if (!aborted_) (void)ncclCommUserRank(comm_, &rank);
    return rank;
  }
  int size() const override {
    int size = -1;
    if (!aborted_) (void)ncclCommCount(comm_, &size);
    return size;
  }

 private:
  ncclResult_t issue(const Call& call);

  const ncclComm_t comm_;
  const bool blocks_;
  bool aborted_ = false;
};

ncclResult_t NcclComm::issue(const Call& call) {
  const Step& step = *call.step;
  const void* const in = call.input.data;
  void* const out = call.output.data;
  const ncclDataType_t type = type_of(step.type);
  ncclRedOp_t op = ncclSum;
  if (step.op == ReduceOp::prod) op = ncclProd;
  if (step.op == ReduceOp::min) op = ncclMin;
  if (step.op == ReduceOp::max) op = ncclMax;
  if (step.op == ReduceOp::avg) op = ncclAvg;
  const bool scaled = is_reduction(step.kind) && step.op == ReduceOp::premul_sum;
  if (scaled) {
    testing::TypedTensor factor(step.type, 1);
    factor.set(0, factor_of(step, call.rank));
    const ncclResult_t made =
        ncclRedOpCreatePreMulSum(&op, factor.view().data, type, ncclScalarHostImmediate, comm_);
    if (made != ncclSuccess) return made;
  }
  ncclResult_t code = ncclSuccess;
  switch (step.kind) {
    case Kind::all_reduce:
      code = ncclAllReduce(in, out, step.count, type, op, comm_, nullptr);
      break;
    case Kind::reduce_scatter:
      code = ncclReduceScatter(in, out, step.count, type, op, comm_, nullptr);
      break;
    case Kind::reduce:
      code = ncclReduce(in, out, step.count, type, op, step.root, comm_, nullptr);
      break;
    case Kind::all_gather:
      code = ncclAllGather(in, out, step.count, type, comm_, nullptr);
      break;
    case Kind::broadcast:
      code = ncclBroadcast(in, out, step.count, type, step.root, comm_, nullptr);
      break;
    case Kind::gather:
      code = ncclGather(in, out, step.count, type, step.root, comm_, nullptr);
      break;
    case Kind::scatter:
      code = ncclScatter(in, out, step.count, type, step.root, comm_, nullptr);
      break;
    case Kind::all_to_all:
      code = ncclAlltoAll(in, out, step.count, type, comm_, nullptr);
      break;
    default: {
      const bool several = call.messages.size() > 1;
      if (several) code = ncclGroupStart();
      for (const Message& one : call.messages) {
        const ncclResult_t issued =
            one.kind == Message::Kind::send
                ? ncclSend(one.input.data, one.input.count, type, one.peer, comm_, nullptr)
                : ncclRecv(one.output.data, one.output.count, type, one.peer, comm_, nullptr);
        if (code == ncclSuccess) code = issued;
      }
      if (several) {
        const ncclResult_t ended = ncclGroupEnd();
        if (code == ncclSuccess) code = ended;
      }
    }
  }
  code = settled(code, comm_);
  if (scaled) (void)ncclRedOpDestroy(op, comm_);
  return code;
}

Outcome NcclComm::run(const Call& call) {
  if (aborted_) return Status::error(StatusCode::kCancelled, "aborted");
  const Step& step = *call.step;
  if (step.kind == Kind::wrong) {
    float values[4] = {};
    return status_of("Broadcast",
                     ncclBroadcast(values, values, 4, ncclFloat32, call.size, comm_, nullptr),
                     comm_);
  }
  const Status status = status_of(std::string(to_string(step.kind)).c_str(), issue(call), comm_);
  if (!status.ok()) return status;
  CollectiveReport report;  // NCCL has no reports, so this is what one would say
  for (const Message& one : call.messages)
    report.messages.push_back(
        {.source = one.kind == Message::Kind::send ? static_cast<Rank>(call.rank) : one.peer,
         .tag = one.tag,
         .count = one.kind == Message::Kind::send ? one.input.count : one.output.count});
  return report;
}

class NcclLibrary final : public Library {
 public:
  explicit NcclLibrary(std::string folder) : places_(std::move(folder)) {}

  Result<std::unique_ptr<Comm>> create(const Options& options, Way::How how) override {
    const std::string key = "id/" + options.communicator_name;
    ncclUniqueId id;
    if (*options.rank == 0) {
      const ncclResult_t code = ncclGetUniqueId(&id);
      if (code != ncclSuccess) return status_of("GetUniqueId", code, nullptr);
      const Status put = places_.put(key, std::as_bytes(std::span(&id, 1)));
      if (!put.ok()) return put;
    } else {
      const auto got = places_.get(key, std::chrono::seconds(60));
      if (!got.ok()) return got.status();
      std::memcpy(&id, got->data(), sizeof id);
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = how == Way::How::blocking ? 1 : 0;
    ncclComm_t comm = nullptr;
    ncclResult_t code =
        ncclCommInitRankConfig(&comm, *options.world_size, id, *options.rank, &config);
    code = settled(code, comm);
    if (code != ncclSuccess) return status_of("CommInitRankConfig", code, comm);
    return std::unique_ptr<Comm>(std::make_unique<NcclComm>(comm, how == Way::How::blocking));
  }
  Result<std::vector<std::unique_ptr<Comm>>> create_inproc(int size, const Options&) override {
    std::vector<ncclComm_t> made(static_cast<std::size_t>(size));
    const ncclResult_t code = ncclCommInitAll(made.data(), size, nullptr);
    if (code != ncclSuccess) return status_of("CommInitAll", code, nullptr);
    std::vector<std::unique_ptr<Comm>> all;
    for (const ncclComm_t one : made) all.push_back(std::make_unique<NcclComm>(one, true));
    return all;
  }
  std::shared_ptr<void> join(const Options& options) override {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    if (ncclGetUniqueId(&id) == ncclSuccess)
      (void)ncclCommInitRankConfig(&comm, *options.world_size, id, *options.rank, &config);
    return {comm, [](void*) {}};
  }

 private:
  FileRendezvous places_;
};

}  // namespace

std::unique_ptr<Library> nccl_library(const Program& program, const Meeting& meeting) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  switch (program.route) {
    case Route::automatic:
    case Route::inproc:
    case Route::sealed:
      break;
    case Route::near:
    case Route::shm:
      set("LEEWAY_TRANSPORT", "shm");
      break;
    case Route::mixed:
      set("LEEWAY_TRANSPORT", "mixed");
      break;
    case Route::udp:
    case Route::sites:
      set("LEEWAY_TRANSPORT", "udp");
      set("LEEWAY_NCCL_SEAL", "0");
      break;
    case Route::lanes:
      set("LEEWAY_TRANSPORT", "udp");
      set("LEEWAY_LANES", "2");
      break;
    case Route::faulted:
      set("LEEWAY_FAULT", "loss=0.05,burst=4,dup=0.02,reorder=0.05,corrupt=0.01");
      break;
  }
  return std::make_unique<NcclLibrary>(meeting.folder);
}

}  // namespace leeway::programs
