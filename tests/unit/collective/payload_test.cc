// Tests operations whose source and sink encode, sum and decode elements, chunk by chunk and late.
// All bits must be those of the same operation by the library alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/philox.h"
#include "collective/host_payload.h"
#include "support/engine_group.h"
#include "support/seeds.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;
using ::testing::HasSubstr;

constexpr Duration kStep = 50us;

struct PayloadCase {
  std::string name;
  OperationKind kind = OperationKind::all_reduce;
  DataType dtype = DataType::f32;
  int size = 3;
  std::size_t count = 150'001;  // per block, or for the whole tensor; several chunks a shard
  CollectiveOptions options;
  double loss = 0.0;
  bool multicast = false;
  // If not 0, chunks are encoded and used at random times, and calls of a lossless class run over a
  // network that also doubles, damages and overtakes.
  std::uint64_t seed = 0;
};

CollectiveOptions with(const char* codec, Delivery delivery = exact(10s)) {
  CollectiveOptions options;
  options.codec = parse_codec(codec).value();
  options.delivery = delivery;
  return options;
}

GroupOptions network_of(const PayloadCase& example) {
  GroupOptions options{.size = example.size};
  options.multicast = example.multicast;
  options.faults.loss = example.loss;
  options.faults.seed = 5 + example.seed;
  if (example.seed == 0 || example.options.delivery.kind == Delivery::Kind::best_effort)
    return options;
  options.faults.duplicate = options.faults.reorder = 0.05;
  options.faults.corrupt = 0.02;
  return options;
}

// The tensors of one rank, of any type. Their 16-bit patterns are small floats in all types.
struct Tensors {
  std::vector<std::byte> input;
  std::vector<std::byte> output;
};

class PayloadCall {
 public:
  explicit PayloadCall(const PayloadCase& example)
      : case_(example), group_(network_of(example)), tensors_(example.size) {
    const std::size_t element = size_of(example.dtype);
    for (Rank rank = 0; rank < example.size; ++rank) {
      tensors_[rank].input.resize(input_count() * element);
      tensors_[rank].output.assign(output_count() * element, std::byte{0});
      fill(rank);
      place_own(rank);
    }
  }

  std::size_t input_count() const {
    return case_.kind == OperationKind::reduce_scatter ? case_.count * case_.size : case_.count;
  }
  std::size_t output_count() const {
    const bool gathers =
        case_.kind == OperationKind::all_gather || case_.kind == OperationKind::gather;
    return gathers ? case_.count * case_.size : case_.count;
  }

  OperationSpec spec_of(Rank rank) {
    OperationSpec spec{.kind = case_.kind};
    spec.peer = 1;
    spec.input = {tensors_[rank].input.data(), input_count(), case_.dtype};
    spec.output = {tensors_[rank].output.data(), output_count(), case_.dtype};
    if (case_.kind == OperationKind::broadcast) spec.input = spec.output;
    spec.options = case_.options;
    return spec;
  }

  // Returns an operation whose tensors have no memory.
  OperationSpec spec_elsewhere(Rank rank, HostPayload& payload) {
    OperationSpec spec = spec_of(rank);
    spec.input.data = nullptr;
    spec.output.data = nullptr;
    spec.options.source = &payload;
    spec.options.sink = &payload;
    return spec;
  }

  HostTensors host_tensors(Rank rank) {
    Tensors& own = tensors_[rank];
    HostTensors tensors{.input = {own.input.data(), input_count(), case_.dtype},
                        .output = {own.output.data(), output_count(), case_.dtype},
                        .factor = case_.options.factor,
                        .poll_every = kStep};
    const std::size_t element = size_of(case_.dtype);
    switch (case_.kind) {
      case OperationKind::all_gather:
        tensors.own_block = own.output.data() + rank * case_.count * element;
        break;
      case OperationKind::gather:
        tensors.own_block = own.input.data();
        tensors.adopt = false;
        break;
      default:
        tensors.own_block = own.output.data();
    }
    return tensors;
  }

  void run() {
    const auto requests = group_.submit_all([&](Rank rank) { return spec_of(rank); });
    ASSERT_TRUE(group_.run(requests));
    for (const Request* request : requests) ASSERT_TRUE(request->status.ok());
  }

  // Runs the calls. Ranks from `first` on use a payload: at each step they encode one chunk and use
  // one chunk that came.
  void run_elsewhere(Rank first = 0) {
    std::vector<std::unique_ptr<HostPayload>> payloads;
    std::vector<std::deque<PayloadChunk>> to_encode(case_.size);
    std::vector<Request*> requests;
    for (Rank rank = 0; rank < case_.size; ++rank) {
      payloads.push_back(std::make_unique<HostPayload>(host_tensors(rank)));
      const bool elsewhere = rank >= first;
      requests.push_back(
          &group_.submit(rank, elsewhere ? spec_elsewhere(rank, *payloads[rank]) : spec_of(rank)));
      ASSERT_TRUE(requests.back()->status.ok()) << requests.back()->status.text();
      if (!elsewhere) continue;
      const auto chunks = payloads[rank]->chunks();
      to_encode[rank].assign(chunks.begin(), chunks.end());
    }
    for (int step = 0; step < 100'000; ++step) {
      if (group_.run(requests, kStep)) break;
      for (Rank rank = first; rank < case_.size; ++rank) {
        if (!to_encode[rank].empty() && is_time(step, rank, 0)) {
          payloads[rank]->encode(to_encode[rank].front());
          to_encode[rank].pop_front();
        }
        if (is_time(step, rank, 1)) payloads[rank]->use();
      }
    }
    for (const Request* request : requests) {
      ASSERT_TRUE(request->done);
      ASSERT_TRUE(request->status.ok()) << request->status.text();
    }
    for (const auto& payload : payloads) EXPECT_EQ(payload->unused(), 0u);
    EXPECT_TRUE(group_.settle());
  }

  EngineGroup& group() { return group_; }
  const Tensors& tensors(Rank rank) const { return tensors_[rank]; }

 private:
  // Returns true if a rank encodes (`what` 0) or uses (1) a chunk at this step. With a seed, it
  // does so at random, at one of 1 to 64 steps on average.
  bool is_time(int step, Rank rank, std::uint32_t what) const {
    if (case_.seed == 0) return true;
    const auto pace = keyed_hash(case_.seed, 0, 1, rank, what) % 7;
    const auto draw = keyed_hash(case_.seed, static_cast<std::uint32_t>(step), 2, rank, what);
    return draw % (std::uint64_t{1} << pace) == 0;
  }

  void fill(Rank rank) {
    auto& bytes = tensors_[rank].input;
    const std::size_t element = size_of(case_.dtype);
    std::mt19937_64 draws(rank);  // a counter-based generator takes a third of the test's time
    for (std::size_t i = 0; i < input_count(); ++i) {
      const std::uint64_t draw = draws();
      std::byte* at = bytes.data() + i * element;
      std::memcpy(at, &draw, element);
      // Values must be finite and small.
      if (case_.dtype == DataType::f32) {
        const float value = static_cast<float>(to_unit(draw) - 0.3);
        std::memcpy(at, &value, element);
      } else if (case_.dtype == DataType::f64) {
        const double value = to_unit(draw) - 0.3;
        std::memcpy(at, &value, element);
      } else if (is_floating(case_.dtype)) {
        const auto bits = static_cast<std::uint16_t>((draw & 0x83FF) | 0x3800);
        std::memcpy(at, &bits, element);
      }
    }
  }

  // Copies a rank's own data to its place. The library leaves that copy to a payload.
  void place_own(Rank rank) {
    Tensors& own = tensors_[rank];
    const std::size_t bytes = own.input.size();
    if (case_.kind == OperationKind::all_gather)
      std::memcpy(own.output.data() + rank * bytes, own.input.data(), bytes);
    if (case_.kind == OperationKind::gather && rank == 1)
      std::memcpy(own.output.data() + rank * bytes, own.input.data(), bytes);
    if (case_.kind == OperationKind::broadcast && rank == 1)
      std::memcpy(own.output.data(), own.input.data(), bytes);
  }

  PayloadCase case_;
  EngineGroup group_;
  std::vector<Tensors> tensors_;
};

class PayloadEverywhere : public ::testing::TestWithParam<PayloadCase> {};

void expect_equal(const PayloadCall& a, const PayloadCall& b, int size) {
  for (Rank rank = 0; rank < size; ++rank)
    EXPECT_TRUE(a.tensors(rank).output == b.tensors(rank).output) << "rank " << rank;
}

TEST_P(PayloadEverywhere, BitsAreThoseOfThePlainCall) {
  PayloadCall plain(GetParam());
  plain.run();
  PayloadCall elsewhere(GetParam());
  elsewhere.run_elsewhere();
  if (!HasFailure()) expect_equal(plain, elsewhere, GetParam().size);
  PayloadCall without_rank_0(GetParam());
  without_rank_0.run_elsewhere(1);
  if (!HasFailure()) expect_equal(plain, without_rank_0, GetParam().size);
}

std::vector<PayloadCase> payload_cases() {
  std::vector<PayloadCase> cases;
  for (const char* codec :
       {"native", "bf16", "fp8_e4m3", "fp8_e5m2_block", "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4",
        "nvfp4", "nvfp4:rotate", "nvfp4_te", "luq:draws=2", "int8", "sparse:1/2"}) {
    std::string name = codec;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
    // Usual runs test each codec in one delivery class only, by turns exact and best effort.
    const bool both = testing::kTakesAll;
    const bool exactly = cases.size() % 2 == 0;
    if (both || exactly) cases.push_back({.name = "all_reduce_" + name, .options = with(codec)});
    if (both || !exactly)
      cases.push_back(
          {.name = "lossy_" + name, .options = with(codec, best_effort(10s)), .loss = 0.1});
  }
  cases.push_back({.name = "one_rank", .size = 1, .options = with("nvfp4")});
  cases.push_back({.name = "few_elements", .count = 5, .options = with("nvfp4")});
  cases.push_back({.name = "no_elements", .count = 0, .options = with("nvfp4")});
  cases.push_back({.name = "multicast", .options = with("nvfp4"), .multicast = true});
  cases.push_back({.name = "exact_under_loss", .options = with("nvfp4"), .loss = 0.2});
  {
    PayloadCase other{.name = "two_codecs", .options = with("nvfp4")};
    other.options.spread_codec = Codec::bf16;
    cases.push_back(other);
    other.name = "average_two_codecs_under_loss";
    other.options = with("native", best_effort(10s));
    other.options.spread_codec = parse_codec("mxfp4").value();
    other.options.op = ReduceOp::avg;
    other.loss = 0.3;
    cases.push_back(other);
  }
  for (const Estimator estimator :
       {Estimator::zero_fill, Estimator::ratio, Estimator::horvitz_thompson, Estimator::augmented,
        Estimator::stratified}) {
    PayloadCase other{.name = "estimator_" + std::string(to_string(estimator)),
                      .options = with("fp8_e4m3_block", best_effort(10s)),
                      .loss = 0.2};
    other.options.estimator = estimator;
    other.options.op = ReduceOp::avg;
    cases.push_back(other);
  }
  PayloadCase bounded{.name = "bounded_loss", .options = with("nvfp4", Delivery{}), .loss = 0.1};
  bounded.options.delivery = {Delivery::Kind::bounded, 0.0, 10s};
  cases.push_back(bounded);
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::prod, ReduceOp::avg}) {
    PayloadCase other{.name = "int64_" + std::string(to_string(op)),
                      .dtype = DataType::i64,
                      .options = with("native")};
    other.options.op = op;
    cases.push_back(other);
    other.dtype = DataType::f64;
    other.name = "float64_" + std::string(to_string(op));
    cases.push_back(other);
  }
  PayloadCase product{.name = "premultiplied", .options = with("nvfp4")};
  product.options.op = ReduceOp::premul_sum;
  product.options.factor = Scalar(0.37);
  cases.push_back(product);
  for (const DataType dtype : {DataType::bf16, DataType::f16}) {
    cases.push_back({.name = "all_reduce_" + std::string(to_string(dtype)),
                     .dtype = dtype,
                     .options = with("nvfp4")});
    cases.push_back({.name = "native_" + std::string(to_string(dtype)),
                     .dtype = dtype,
                     .options = with("native", best_effort(10s)),
                     .loss = 0.1});
  }
  for (const OperationKind kind :
       {OperationKind::reduce_scatter, OperationKind::reduce, OperationKind::all_gather,
        OperationKind::broadcast, OperationKind::gather}) {
    for (const char* codec : {"native", "nvfp4"}) {
      cases.push_back({.name = std::string(wire::to_string(kind)) + "_" + codec,
                       .kind = kind,
                       .options = with(codec),
                       .loss = 0.05});
    }
  }
  if (testing::kTakesAll) return cases;
  std::vector<PayloadCase> third;
  for (std::size_t i = 0; i < cases.size(); i += 3) third.push_back(cases[i]);
  return third;
}

INSTANTIATE_TEST_SUITE_P(Cases, PayloadEverywhere, ::testing::ValuesIn(payload_cases()),
                         [](const auto& example) { return example.param.name; });

// Draws a call of any kind, with sources and sinks at any pace on any ranks.
PayloadCase drawn_case(std::uint64_t seed) {
  const auto draw = [&](std::uint32_t what, std::uint64_t below) {
    return keyed_hash(seed, what, 0, 0, 0) % below;
  };
  constexpr OperationKind kSourceKinds[] = {
      OperationKind::all_reduce, OperationKind::all_reduce, OperationKind::reduce_scatter,
      OperationKind::reduce,     OperationKind::all_gather, OperationKind::broadcast,
      OperationKind::gather};
  constexpr const char* kCodecs[] = {"native", "bf16", "nvfp4", "mxfp4:rotate", "int8"};
  constexpr Estimator kEstimators[] = {Estimator::zero_fill, Estimator::ratio,
                                       Estimator::horvitz_thompson, Estimator::augmented,
                                       Estimator::stratified};
  PayloadCase drawn{.name = "drawn", .seed = seed};
  drawn.kind = kSourceKinds[draw(0, std::size(kSourceKinds))];
  drawn.size = 2 + static_cast<int>(draw(1, 4));
  drawn.count = draw(2, 3) == 0 ? draw(3, 200) : draw(3, 150'000);
  const bool lossy = has_reduce_half(drawn.kind) && draw(4, 3) == 0;
  drawn.options = with(kCodecs[draw(5, std::size(kCodecs))], lossy ? best_effort(10s) : exact(10s));
  drawn.options.estimator = kEstimators[draw(6, std::size(kEstimators))];
  if (has_reduce_half(drawn.kind) && draw(7, 2) == 0) drawn.options.op = ReduceOp::avg;
  if (drawn.kind == OperationKind::all_reduce && draw(8, 2) == 0)
    drawn.options.spread_codec = parse_codec(kCodecs[draw(9, std::size(kCodecs))]).value();
  drawn.loss = 0.05 * static_cast<double>(draw(10, 5));
  drawn.multicast = draw(11, 4) == 0;
  return drawn;
}

TEST(PayloadDrawn, BitsAreThoseOfThePlainCallAtAnyPace) {
  for (std::uint64_t seed = 1; seed <= testing::seeds(20, 150); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PayloadCase drawn = drawn_case(seed);
    PayloadCall plain(drawn);
    plain.run();
    PayloadCall elsewhere(drawn);
    elsewhere.run_elsewhere(static_cast<Rank>(seed % drawn.size));
    if (HasFatalFailure()) return;
    expect_equal(plain, elsewhere, drawn.size);
  }
}

// ---- what goes wrong ----------------------------------------------------------------------------

// A source and a sink that do one thing wrong.
class Faulty final : public PayloadSource, public PayloadSink {
 public:
  explicit Faulty(HostPayload& good) : good_(good) {}

  std::size_t bytes_missing = 0;              // bytes short in every encoded chunk
  std::size_t landing_missing = 0;            // bytes short in the landing memory
  bool uses = true;                           // false: the sink never says that it does
  StatusCode refuses_with = StatusCode::kOk;  // if set, the source does not begin
  bool withholds_spread = false;              // the source never encodes its own block

  Status begin(const PayloadLayout& layout) override {
    if (refuses_with != StatusCode::kOk) return Status::error(refuses_with, "no such device");
    return good_.begin(layout);
  }
  EncodedChunk encoded(const PayloadChunk& chunk) override {
    if (withholds_spread && chunk.half == PayloadHalf::spread) return {};
    EncodedChunk encoded = good_.encoded(chunk);
    if (encoded.data != nullptr) encoded.bytes -= bytes_missing;
    return encoded;
  }
  Duration poll_every() const override { return kStep; }
  Result<MutableByteSpan> landing(const PayloadLayout& layout) override {
    const Result<MutableByteSpan> memory = good_.landing(layout);
    return memory->first(memory->size() - landing_missing);
  }
  void take(const PayloadChunk& chunk,
            std::span<const PayloadContribution> contributions) override {
    good_.take(chunk, contributions);
  }
  bool used(const PayloadChunk& chunk) override { return uses && good_.used(chunk); }

 private:
  HostPayload& good_;
};

// An all_reduce of three ranks, in which rank 0 has a faulty payload.
class PayloadFault : public ::testing::Test {
 protected:
  void start(Delivery delivery = exact(1s)) {
    options_ = with("nvfp4", delivery);
    for (Rank rank = 0; rank < example_.size; ++rank) submit(rank);
  }
  void submit(Rank rank) {
    OperationSpec spec = rank == 0 ? call_.spec_elsewhere(0, host_) : call_.spec_of(rank);
    spec.options.delivery = options_.delivery;
    if (rank == 0) {
      spec.options.source = &faulty_;
      spec.options.sink = &faulty_;
    }
    requests_.push_back(&call_.group().submit(rank, spec));
  }
  // Encodes all but the last `withheld` chunks, and uses all that come, until rank 0 is done.
  void run(std::size_t withheld = 0) {
    const auto chunks = host_.chunks();
    for (std::size_t i = 0; i + withheld < chunks.size(); ++i) host_.encode(chunks[i]);
    for (int step = 0; step < 200'000 && !requests_[0]->done; ++step) {
      call_.group().run({requests_[0]}, kStep);
      while (host_.use()) {
      }
    }
    ASSERT_TRUE(requests_[0]->done);
  }
  const Status& status(Rank rank = 0) const { return requests_[rank]->status; }
  std::string text(Rank rank = 0) const { return std::string(status(rank).text()); }

  PayloadCase example_{.name = "fault", .options = with("nvfp4")};
  CollectiveOptions options_;
  PayloadCall call_{example_};
  HostPayload host_{call_.host_tensors(0)};
  Faulty faulty_{host_};
  std::vector<Request*> requests_;
};

TEST_F(PayloadFault, NoneIsNone) {
  start();
  run();
  EXPECT_TRUE(status().ok()) << text();
}

TEST_F(PayloadFault, AChunkThatIsNeverEncodedIsNamedAtTheDeadline) {
  start();
  run(1);
  EXPECT_EQ(status().code(), StatusCode::kDeadlineExceeded);
  const PayloadChunk last = host_.chunks().back();
  EXPECT_THAT(text(),
              HasSubstr("payload source has not encoded chunk " + std::to_string(last.index) +
                        " of the contribution to rank " + std::to_string(last.owner)));
  // The others must blame rank 0, which kept them waiting.
  ASSERT_TRUE(call_.group().run(requests_));
  EXPECT_THAT(text(last.owner), HasSubstr("rank 0"));
}

TEST_F(PayloadFault, UnderALossyClassPeersDoWithoutIt) {
  start(best_effort(1s));
  run(1);
  EXPECT_EQ(status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(text(), HasSubstr("has not encoded chunk"));
  ASSERT_TRUE(call_.group().run(requests_));
  EXPECT_TRUE(status(1).ok()) << text(1);
  EXPECT_TRUE(status(2).ok()) << text(2);
}

TEST_F(PayloadFault, AReducedChunkThatIsNeverEncodedIsNamed) {
  faulty_.withholds_spread = true;
  start();
  run();
  EXPECT_EQ(status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(text(), HasSubstr("has not encoded chunk"));
  EXPECT_THAT(text(), HasSubstr("of the block of rank 0"));
}

TEST_F(PayloadFault, ASinkThatNeverUsesAChunkIsNamed) {
  faulty_.uses = false;
  start();
  run();
  EXPECT_EQ(status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(text(), HasSubstr("the payload sink has not used chunk"));
  ASSERT_TRUE(call_.group().run(requests_));
  EXPECT_TRUE(status(1).ok()) << text(1);
}

TEST_F(PayloadFault, AChunkOfAWrongSizeFailsAtOnce) {
  faulty_.bytes_missing = 1;
  start();
  run();
  EXPECT_EQ(status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(), HasSubstr("the payload source gave"));
  EXPECT_THAT(text(), HasSubstr("of the contribution to rank 1"));
  ASSERT_TRUE(call_.group().run(requests_));
  EXPECT_FALSE(status(1).ok());
}

TEST_F(PayloadFault, ASourceThatRefusesFailsTheCallBeforeAnythingIsSent) {
  faulty_.refuses_with = StatusCode::kUnavailable;
  submit(0);
  EXPECT_TRUE(requests_[0]->done);
  EXPECT_EQ(text(), "no such device");
  EXPECT_EQ(call_.group().engine(0).endpoint().counters().data_sent, 0u);
}

// Rank 0 is alive though its source fails. So peers must hear of a failed call, and not of a lost
// rank.
TEST_F(PayloadFault, WhateverCodeASourceGivesPeersHearOfAFailedCall) {
  for (int code = 1; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    faulty_.refuses_with = static_cast<StatusCode>(code);
    requests_.clear();
    start();
    ASSERT_TRUE(call_.group().run(requests_)) << code;
    EXPECT_EQ(status().code(), faulty_.refuses_with);
    const StatusCode told = faulty_.refuses_with == StatusCode::kDeadlineExceeded
                                ? StatusCode::kDeadlineExceeded
                                : StatusCode::kMismatch;
    EXPECT_EQ(status(1).code(), told) << text(1);
    EXPECT_THAT(text(1), HasSubstr("rank 0"));
  }
}

TEST_F(PayloadFault, LandingMemoryThatIsTooShortIsRefused) {
  faulty_.landing_missing = 1;
  submit(0);
  EXPECT_EQ(status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(), HasSubstr("to land in"));
}

TEST_F(PayloadFault, CancellingEndsACallThatWaitsForItsSink) {
  faulty_.uses = false;
  start(exact(no_deadline));
  for (const PayloadChunk& chunk : host_.chunks()) host_.encode(chunk);
  const std::vector<Request*> others(requests_.begin() + 1, requests_.end());
  for (int step = 0; step < 2000 && !(others[0]->done && others[1]->done); ++step) {
    call_.group().run(others, kStep);
    while (host_.use()) {
    }
  }
  ASSERT_TRUE(others[0]->done && others[1]->done);
  EXPECT_FALSE(requests_[0]->done);
  EXPECT_FALSE(call_.group().engine(0).idle());
  call_.group().engine(0).cancel(call_.group().now(),
                                 Status::error(StatusCode::kCancelled, "enough"));
  EXPECT_EQ(status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(call_.group().settle());
}

TEST(PayloadValidation, WhatASourceCannotDoIsRefused) {
  const PayloadCase example{.name = "refused", .options = with("nvfp4")};
  PayloadCall call(example);
  HostPayload host(call.host_tensors(0));
  const auto code_of = [&](auto&& change) {
    OperationSpec spec = call.spec_elsewhere(0, host);
    change(spec);
    return validate(spec, 0, example.size).code();
  };
  std::vector<float> floats(example.count);
  EXPECT_EQ(code_of([](OperationSpec&) {}), StatusCode::kOk);
  EXPECT_EQ(code_of([](OperationSpec& spec) { spec.options.sink = nullptr; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of([](OperationSpec& spec) { spec.options.source = nullptr; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of([](OperationSpec& spec) { spec.kind = OperationKind::send; }),
            StatusCode::kUnsupported);
  EXPECT_EQ(code_of([](OperationSpec& spec) { spec.kind = OperationKind::all_to_all; }),
            StatusCode::kUnsupported);
  EXPECT_EQ(code_of([](OperationSpec& spec) { spec.options.codec = Codec::automatic; }),
            StatusCode::kUnsupported);
  EXPECT_EQ(code_of([&](OperationSpec& spec) { spec.options.residual = floats; }),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace leeway::collective
