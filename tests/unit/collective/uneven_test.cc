// Tests blocks of different lengths, operations in place, and errors of both.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/philox.h"
#include "support/engine_group.h"
#include "support/seeds.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr float kUntouched = -7.0f;

// Random numbers from one key.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t n) { return keyed_hash(seed_, next_++, 0, 0, 0) % n; }

 private:
  std::uint64_t seed_;
  std::uint32_t next_ = 0;
};

// The blocks of one buffer. Some are empty, they may have gaps, and their order is random.
struct Layout {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;
  std::size_t elements = 0;

  Layout(Draws& draws, std::vector<std::size_t> counts_in) : counts(std::move(counts_in)) {
    if (draws.below(3) == 0) {
      elements = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      return;
    }
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
    displacements.resize(counts.size());
    for (const std::size_t block : order) {
      elements += draws.below(4);
      displacements[block] = elements;
      elements += counts[block];
    }
    elements += draws.below(4);
  }
  Blocks blocks() const { return Blocks(counts, displacements); }
  std::size_t offset(std::size_t block) const {
    return displacements.empty()
               ? std::accumulate(counts.begin(),
                                 counts.begin() + static_cast<std::ptrdiff_t>(block),
                                 std::size_t{0})
               : displacements[block];
  }
};

std::vector<std::size_t> draw_counts(Draws& draws, int size, std::size_t most) {
  std::vector<std::size_t> counts(size);
  for (std::size_t& count : counts) count = draws.below(4) == 0 ? 0 : draws.below(most);
  return counts;
}

// Returns a small integer, so that sums are exact in any order.
float value_of(Rank from, Rank to, std::size_t i) {
  return static_cast<float>((i * 7 + from * 13u + to * 29u) % 97);
}

// One call of one rank, with its buffers.
struct Side {
  std::vector<float> input;
  std::vector<float> output;
  std::vector<float> expected;  // the right output
  OperationSpec spec;
};

Side all_gather(Draws& draws, Rank self, const std::vector<std::size_t>& counts, bool in_place) {
  Side side;
  const Layout layout(draws, counts);
  side.output.assign(layout.elements, kUntouched);
  side.expected = side.output;
  for (Rank from = 0; from < counts.size(); ++from) {
    for (std::size_t i = 0; i < counts[from]; ++i)
      side.expected[layout.offset(from) + i] = value_of(from, 0, i);
  }
  for (std::size_t i = 0; i < counts[self]; ++i) side.input.push_back(value_of(self, 0, i));
  side.spec.kind = OperationKind::all_gather;
  side.spec.output = std::span(side.output);
  side.spec.output_blocks = BlockList(layout.blocks());
  if (in_place) {
    std::copy(side.input.begin(), side.input.end(), side.output.begin() + layout.offset(self));
    side.spec.input = std::span(side.output).subspan(layout.offset(self), counts[self]);
  } else {
    side.spec.input = std::span(side.input);
  }
  return side;
}

Side reduce_scatter(Draws& draws, Rank self, const std::vector<std::size_t>& counts,
                    bool in_place) {
  Side side;
  const Layout layout(draws, counts);
  side.input.assign(layout.elements, kUntouched);
  for (Rank to = 0; to < counts.size(); ++to) {
    for (std::size_t i = 0; i < counts[to]; ++i)
      side.input[layout.offset(to) + i] = value_of(self, to, i);
  }
  side.output.assign(counts[self], kUntouched);
  for (std::size_t i = 0; i < counts[self]; ++i) {
    float sum = 0;
    for (Rank from = 0; from < counts.size(); ++from) sum += value_of(from, self, i);
    side.expected.push_back(sum);
  }
  side.spec.kind = OperationKind::reduce_scatter;
  side.spec.input = std::span(side.input);
  side.spec.output = in_place ? std::span(side.input).subspan(layout.offset(self), counts[self])
                              : std::span(side.output);
  side.spec.input_blocks = BlockList(layout.blocks());
  return side;
}

// matrix[i][j] is the number of elements that rank i sends to rank j.
Side all_to_all(Draws& draws, Rank self, const std::vector<std::vector<std::size_t>>& matrix) {
  Side side;
  const std::size_t size = matrix.size();
  std::vector<std::size_t> receives(size);
  for (std::size_t from = 0; from < size; ++from) receives[from] = matrix[from][self];
  const Layout in(draws, matrix[self]);
  const Layout out(draws, receives);
  side.input.assign(in.elements, kUntouched);
  side.output.assign(out.elements, kUntouched);
  side.expected = side.output;
  for (Rank peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < matrix[self][peer]; ++i)
      side.input[in.offset(peer) + i] = value_of(self, peer, i);
    for (std::size_t i = 0; i < receives[peer]; ++i)
      side.expected[out.offset(peer) + i] = value_of(peer, self, i);
  }
  side.spec.kind = OperationKind::all_to_all;
  side.spec.input = std::span(side.input);
  side.spec.output = std::span(side.output);
  side.spec.input_blocks = BlockList(in.blocks());
  side.spec.output_blocks = BlockList(out.blocks());
  return side;
}

std::vector<Side> draw_sides(Draws& draws, int size) {
  const std::size_t most = draws.below(4) == 0 ? 3000 : 40;
  const std::size_t kind = draws.below(3);
  const bool in_place = draws.below(2) == 0;
  const auto counts = draw_counts(draws, size, most);
  std::vector<std::vector<std::size_t>> matrix;
  for (int from = 0; from < size; ++from) matrix.push_back(draw_counts(draws, size, most));
  std::vector<Side> sides;
  for (Rank self = 0; self < size; ++self) {
    sides.push_back(kind == 0   ? all_gather(draws, self, counts, in_place)
                    : kind == 1 ? reduce_scatter(draws, self, counts, in_place)
                                : all_to_all(draws, self, matrix));
  }
  return sides;
}

// Makes all calls on one group, so that a call sees whatever earlier ones left behind.
void run_cases(std::uint64_t seed, int cases, double loss) {
  Draws draws(seed);
  GroupOptions options{.size = static_cast<int>(1 + draws.below(5))};
  options.seed = seed;
  options.faults.loss = loss;
  options.faults.reorder = draws.below(2) == 0 ? 0.05 : 0.0;
  options.faults.seed = seed;
  EngineGroup group(options);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i));
    std::vector<Side> sides = draw_sides(draws, options.size);
    std::vector<Request*> requests;
    for (Rank self = 0; self < options.size; ++self)
      requests.push_back(&group.submit(self, sides[self].spec));
    ASSERT_TRUE(group.run(requests));
    for (Rank self = 0; self < options.size; ++self) {
      ASSERT_TRUE(requests[self]->status.ok()) << requests[self]->status.text();
      EXPECT_EQ(requests[self]->report.elements_missing, 0u);
      const auto* result = static_cast<const float*>(sides[self].spec.output.data);
      const std::vector<float> got(result, result + sides[self].spec.output.count);
      ASSERT_EQ(got, sides[self].expected) << to_string(sides[self].spec.kind) << " rank " << self;
    }
  }
  EXPECT_TRUE(group.settle());
}

TEST(UnevenBlocks, EqualTheReferenceUnderLoss) {
  for (int seed = 0; seed < testing::seeds(150, 1000); ++seed) run_cases(seed, 10, 0.1);
}

TEST(UnevenBlocks, EqualTheReferenceWithoutLoss) {
  for (int seed = 2000; seed < 2020; ++seed) run_cases(seed, 10, 0.0);
}

TEST(UnevenBlocks, MayAllBeEmpty) {
  EngineGroup group({.size = 3});
  const std::vector<std::size_t> counts(3, 0);
  for (const auto kind :
       {OperationKind::all_gather, OperationKind::reduce_scatter, OperationKind::all_to_all}) {
    OperationSpec spec{.kind = kind};
    if (kind != OperationKind::all_gather) spec.input_blocks = BlockList(Blocks(counts));
    if (kind != OperationKind::reduce_scatter) spec.output_blocks = BlockList(Blocks(counts));
    const auto requests = group.submit_all([&](Rank) { return spec; });
    ASSERT_TRUE(group.run(requests, 1s)) << to_string(kind);
    for (const Request* request : requests) EXPECT_TRUE(request->status.ok());
  }
  EXPECT_TRUE(group.settle());
}

TEST(UnevenBlocks, MayBeEncoded) {
  EngineGroup group({.size = 3});
  const std::vector<std::size_t> counts = {700, 0, 1500};
  std::vector<std::vector<float>> inputs, outputs(3, std::vector<float>(2200));
  for (Rank rank = 0; rank < 3; ++rank) inputs.emplace_back(counts[rank], 1.0f + rank);
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = OperationKind::all_gather,
                       .input = std::span(inputs[rank]),
                       .output = std::span(outputs[rank])};
    spec.options.codec = Codec::int8;
    spec.options.codec.rotate = true;
    spec.output_blocks = BlockList(Blocks(counts));
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 1s));
  for (const Request* request : requests) ASSERT_TRUE(request->status.ok());
  EXPECT_EQ(outputs[0], outputs[1]) << "all hold the same bits";
  EXPECT_EQ(outputs[0], outputs[2]);
  for (std::size_t i = 0; i < 2200; ++i) EXPECT_NEAR(outputs[0][i], i < 700 ? 1.0f : 3.0f, 0.3f);
}

// ---- disagreement -------------------------------------------------------------------------------

std::vector<Request*> submit_pair(EngineGroup& group, std::vector<std::vector<float>>& buffers,
                                  const std::vector<std::vector<std::size_t>>& sends,
                                  const std::vector<std::vector<std::size_t>>& receives) {
  buffers.assign(4, std::vector<float>(10'000));
  return group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = OperationKind::all_to_all,
                       .input = std::span(buffers[2 * rank]),
                       .output = std::span(buffers[2 * rank + 1])};
    spec.input_blocks = BlockList(Blocks(sends[rank]));
    spec.output_blocks = BlockList(Blocks(receives[rank]));
    return spec;
  });
}

// Rank 0 sends rank 1 `sent` elements, and rank 1 expects `expected`.
void expect_pair_disagrees(std::size_t sent, std::size_t expected, double loss) {
  SCOPED_TRACE(std::to_string(sent) + " sent, " + std::to_string(expected) + " expected");
  GroupOptions options{.size = 2};
  options.faults.loss = loss;
  EngineGroup group(options);
  std::vector<std::vector<float>> buffers;
  const auto requests = submit_pair(group, buffers, {{5, sent}, {20, 5}}, {{5, 20}, {expected, 5}});
  ASSERT_TRUE(group.run(requests, 30s));
  const std::string text = "rank 0 sends rank 1 " + std::to_string(sent) +
                           " elements, rank 1 expects " + std::to_string(expected);
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch);
    EXPECT_NE(request->status.text().find(text), std::string_view::npos) << request->status.text();
  }
}

TEST(UnevenAllToAll, FailsOnBothSidesOfAPairThatDisagrees) {
  for (const double loss : {0.0, 0.2}) {
    expect_pair_disagrees(100, 101, loss);  // the ranks disagree about the last packet only
    expect_pair_disagrees(101, 100, loss);
    expect_pair_disagrees(100, 5000, loss);
    expect_pair_disagrees(5000, 100, loss);
    expect_pair_disagrees(0, 100, loss);
    expect_pair_disagrees(100, 0, loss);
    expect_pair_disagrees(0, 5000, loss);
    expect_pair_disagrees(5000, 0, loss);
  }
}

// The data of a rank's next call confirm its earlier ones. They must not confirm a call that failed
// there, because the other rank may have lost the reports of that failure.
TEST(UnevenAllToAll, FailsOnBothSidesWhateverIsLostBeforeTheNextCall) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GroupOptions options{.size = 2, .seed = seed};
    options.faults.loss = 0.3;
    options.faults.seed = seed;
    EngineGroup group(options);
    const std::vector<std::vector<std::size_t>> right = {{5, 5}, {5, 5}};
    std::vector<std::vector<float>> first, second;
    auto requests = submit_pair(group, first, {{5, 6}, {5, 5}}, right);
    const auto next = submit_pair(group, second, right, right);
    requests.insert(requests.end(), next.begin(), next.end());
    ASSERT_TRUE(group.run(requests, 30s));
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(requests[i]->status.code(), StatusCode::kMismatch) << requests[i]->status.text();
      EXPECT_TRUE(next[i]->status.ok()) << next[i]->status.text();
    }
  }
}

// Many open receives fill rank 1's reports, which must still tell of the failed call.
TEST(UnevenAllToAll, FailsOnBothSidesThoughOneHasManyReceivesOpen) {
  EngineGroup group({.size = 2});
  std::vector<float> received(20 * 5000);
  for (std::uint32_t i = 0; i < 20; ++i) {
    OperationSpec receive{.kind = OperationKind::recv,
                          .output = std::span(received).subspan(i * 5000, 5000),
                          .peer = 0};
    receive.options.tag = i % 3;
    group.submit(1, receive);
  }
  std::vector<std::vector<float>> buffers;
  const auto requests = submit_pair(group, buffers, {{5, 6}, {5, 5}}, {{5, 5}, {5, 5}});
  ASSERT_TRUE(group.run(requests, 30s));
  for (const Request* request : requests)
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch) << request->status.text();
}

TEST(UnevenAllGather, FailsWhereCountsDiffer) {
  EngineGroup group({.size = 2});
  std::vector<std::vector<float>> in(2, std::vector<float>(10)), out(2, std::vector<float>(30));
  const std::vector<std::vector<std::size_t>> counts = {{10, 20}, {20, 10}};
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = OperationKind::all_gather,
                       .input = std::span(in[rank]),
                       .output = std::span(out[rank])};
    spec.output_blocks = BlockList(Blocks(counts[rank]));
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 1s));
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch);
    EXPECT_NE(request->status.text().find("blocks #"), std::string_view::npos)
        << request->status.text();
  }
}

// ---- wrong arguments ----------------------------------------------------------------------------

class UnevenArguments : public ::testing::Test {
 protected:
  void expect(const OperationSpec& spec, const char* text) {
    const Status status = validate(spec, 1, 2);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.text().find(text), std::string_view::npos) << status.text();
  }
  OperationSpec gather(std::vector<std::size_t> counts, std::vector<std::size_t> displacements) {
    OperationSpec spec{.kind = OperationKind::all_gather};
    spec.output = std::span(buffer_);
    spec.input =
        std::span(input_).first(counts.size() > 1 ? std::min<std::size_t>(counts[1], 100) : 0);
    spec.output_blocks = BlockList(Blocks(counts, displacements));
    return spec;
  }

  std::vector<float> buffer_ = std::vector<float>(100);
  std::vector<float> input_ = std::vector<float>(100);
};

TEST_F(UnevenArguments, MustFitTheBuffers) {
  EXPECT_TRUE(validate(gather({60, 40}, {}), 1, 2).ok());
  EXPECT_TRUE(validate(gather({60, 40}, {40, 0}), 1, 2).ok());
  expect(gather({60}, {}), "one count for each rank");
  expect(gather({60, 40}, {0}), "one displacement for each rank");
  expect(gather({61, 40}, {}), "beyond the end");
  expect(gather({10, 10}, {0, 91}), "beyond the end");
  expect(gather({10, 10}, {0, SIZE_MAX}), "beyond the end");
  expect(gather({SIZE_MAX, 10}, {}), "beyond the end");
  expect(gather({20, 20}, {0, 19}), "overlap");
  EXPECT_TRUE(validate(gather({20, 0}, {0, 5}), 1, 2).ok()) << "an empty block overlaps nothing";
  OperationSpec spec = gather({60, 40}, {});
  spec.input = std::span(input_).first(39);
  expect(spec, "own block");
  spec.kind = OperationKind::broadcast;
  spec.peer = 0;
  expect(spec, "no meaning");
}

TEST_F(UnevenArguments, WhoseBytesOverflowAreRefused) {
  OperationSpec spec{.kind = OperationKind::all_to_all};
  const std::vector<std::size_t> counts = {SIZE_MAX / 4, 1};
  spec.input = {input_.data(), SIZE_MAX / 4 + 1, DataType::f32};
  spec.output = {buffer_.data(), SIZE_MAX / 4 + 1, DataType::f32};
  expect(spec, "no memory of so many elements");
  spec.input_blocks = spec.output_blocks = BlockList(Blocks(counts));
  expect(spec, "no memory of so many elements");
  OperationSpec even{.kind = OperationKind::all_gather};
  even.input = {input_.data(), SIZE_MAX / 2 + 1, DataType::u8};  // twice that is 0
  even.output = {buffer_.data(), 0, DataType::u8};
  expect(even, "no memory of so many elements");
  even.input = {input_.data(), SIZE_MAX / 4, DataType::u8};
  expect(even, "size x input");
}

TEST_F(UnevenArguments, MayNotPartlyOverlap) {
  const auto spec_of = [&](OperationKind kind, std::size_t in, std::size_t in_count,
                           std::size_t out, std::size_t out_count) {
    OperationSpec spec{.kind = kind};
    spec.input = std::span(buffer_).subspan(in, in_count);
    spec.output = std::span(buffer_).subspan(out, out_count);
    spec.peer = 1;
    return spec;
  };
  const auto expect_own_place = [&](const OperationSpec& good, const OperationSpec& bad) {
    EXPECT_TRUE(validate(good, 1, 2).ok()) << validate(good, 1, 2).text();
    expect(bad, "overlap");
  };
  using Kind = OperationKind;
  expect_own_place(spec_of(Kind::all_gather, 20, 20, 0, 40),
                   spec_of(Kind::all_gather, 0, 20, 0, 40));
  expect_own_place(spec_of(Kind::gather, 20, 20, 0, 40), spec_of(Kind::gather, 21, 20, 0, 40));
  expect_own_place(spec_of(Kind::reduce_scatter, 0, 40, 20, 20),
                   spec_of(Kind::reduce_scatter, 0, 40, 0, 20));
  expect_own_place(spec_of(Kind::scatter, 0, 40, 20, 20), spec_of(Kind::scatter, 0, 40, 19, 20));
  expect_own_place(spec_of(Kind::all_reduce, 0, 40, 0, 40),
                   spec_of(Kind::all_reduce, 0, 40, 39, 40));
  expect_own_place(spec_of(Kind::reduce, 0, 40, 0, 40), spec_of(Kind::reduce, 1, 40, 0, 40));
  expect_own_place(spec_of(Kind::all_to_all, 0, 40, 40, 40),
                   spec_of(Kind::all_to_all, 0, 40, 0, 40));
}

TEST(FlowLength, BeyondTheLimitIsRefusedBeforeAnythingIsSent) {
  EngineGroup group({.size = 2});
  OperationSpec spec{.kind = OperationKind::broadcast, .peer = 0};
  spec.contents = false;
  const std::size_t each = (1472 - wire::kDataHeaderBytes) / 32 * 32;  // bytes of a packet
  spec.input = {nullptr, each * limits::kFlowPacketsMax + 1, DataType::u8};
  spec.output = {nullptr, spec.input.count, DataType::u8};
  const auto requests = group.submit_all([&](Rank) { return spec; });
  for (const Request* request : requests) {
    EXPECT_TRUE(request->done);
    EXPECT_EQ(request->status.code(), StatusCode::kResourceExhausted) << request->status.text();
  }
  EXPECT_EQ(group.engine(0).endpoint().counters().data_sent, 0u);
}

}  // namespace
}  // namespace leeway::collective
