#include "perf/measurement.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace leeway::tools::perf {
namespace {

Settings small_settings(Operation operation) {
  Settings settings;
  settings.operation = operation;
  settings.iterations = 4;
  settings.warmup = 1;
  settings.checks = 2;
  return settings;
}

// Measures on `ranks` ranks of this process together. Returns rank 0's row.
Row measure_inproc(int ranks, const Settings& settings, std::size_t bytes,
                   const Options& options = {}) {
  auto communicators = Communicator::create_inproc(ranks, options);
  EXPECT_TRUE(communicators.ok()) << communicators.status().c_str();
  std::vector<Row> rows(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto row = measure(*(*communicators)[i], settings, bytes);
      ASSERT_TRUE(row.ok()) << row.status().c_str();
      rows[i] = *row;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return rows[0];
}

Options lossy_links(double loss) {
  Options options;
  options.faults.loss = loss;
  options.faults.seed = 7;
  return options;
}

class EveryOperation : public testing::TestWithParam<Operation> {};

TEST_P(EveryOperation, IsExactWithoutLoss) {
  const Row row = measure_inproc(3, small_settings(GetParam()), 20000);
  EXPECT_EQ(row.out_of_place.wrong, 0);
  EXPECT_EQ(row.loss, 0);
  EXPECT_GT(row.out_of_place.time_us, 0);
  EXPECT_EQ(row.in_place.has_value(), has_in_place(GetParam()));
  if (row.in_place) {
    EXPECT_EQ(row.in_place->wrong, 0);
  }
}

TEST_P(EveryOperation, IsExactUnderLoss) {
  const Row row = measure_inproc(3, small_settings(GetParam()), 100000, lossy_links(0.2));
  EXPECT_EQ(row.out_of_place.wrong, 0);
  EXPECT_EQ(row.out_of_place.nmse, 0);
  EXPECT_EQ(row.loss_residual, 0);
  EXPECT_GT(row.loss, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Measure, EveryOperation,
                         testing::Values(Operation::all_reduce, Operation::reduce_scatter,
                                         Operation::all_gather, Operation::broadcast,
                                         Operation::reduce, Operation::gather, Operation::scatter,
                                         Operation::all_to_all, Operation::sendrecv),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(Measure, BestEffortUnderLossIsMeasuredNotCompared) {
  Settings settings = small_settings(Operation::all_reduce);
  settings.collective.delivery = best_effort(std::chrono::seconds(2));
  const Row row = measure_inproc(3, settings, 300000, lossy_links(0.2));
  EXPECT_FALSE(row.out_of_place.wrong.has_value());
  EXPECT_GT(row.out_of_place.nmse, 0);
  EXPECT_LT(row.out_of_place.nmse, 1);
}

TEST(Measure, BestEffortWithoutLossIsCompared) {
  Settings settings = small_settings(Operation::all_reduce);
  settings.collective.delivery = best_effort(std::chrono::seconds(10));
  EXPECT_EQ(measure_inproc(3, settings, 20000).out_of_place.wrong, 0);
}

TEST(Measure, RoundingCodecIsMeasuredNotCompared) {
  Settings settings = small_settings(Operation::all_reduce);
  settings.collective.codec = Codec::nvfp4;
  const Row row = measure_inproc(3, settings, 100000);
  EXPECT_FALSE(row.out_of_place.wrong.has_value());
  // Two encodings of a uniform distribution make this error, at a signal to noise ratio of some 20
  // dB each. Lost packets would make a very different one.
  EXPECT_GT(row.out_of_place.nmse, 1e-4);
  EXPECT_LT(row.out_of_place.nmse, 0.1);
  EXPECT_EQ(row.codec_used, "nvfp4");
  EXPECT_TRUE(row.gradient_to_noise.has_value());
}

TEST(Measure, SixteenBitCodecsAreCompared) {
  Settings settings = small_settings(Operation::all_reduce);
  settings.collective.codec = Codec::bf16;
  settings.collective.spread_codec = Codec::fp16;
  EXPECT_EQ(measure_inproc(3, settings, 100000).out_of_place.wrong, 0);
}

TEST(Measure, WithoutLossAndRoundingThereIsNoNoise) {
  const Row row = measure_inproc(2, small_settings(Operation::all_reduce), 20000);
  EXPECT_EQ(row.codec_used, "native");
  EXPECT_FALSE(row.gradient_to_noise.has_value());
}

// A name that is longer than its column once cut off the text behind it.
TEST(Measure, NamesOfReductionsFitTheirColumn) {
  for (int i = 0; i < kReduceOpCount; ++i)
    EXPECT_LE(column_name(static_cast<ReduceOp>(i)).size(), 6u);
  Settings settings = small_settings(Operation::all_reduce);
  settings.collective.op = ReduceOp::premul_sum;
  const Row row = measure_inproc(3, settings, 4096);
  EXPECT_EQ(row.redop, "mulsum");
  EXPECT_EQ(row.out_of_place.wrong, 0);
}

// The tensor is one datagram, which has one owner. So two contributions go to the owner, and its
// result to two ranks: four datagrams of data. Confirmations may ride on the next call.
TEST(Measure, CallsBackToBackSayWhatTheyCost) {
  Settings settings = small_settings(Operation::all_reduce);
  settings.back_to_back = 50;
  const Row row = measure_inproc(3, settings, 4096);
  EXPECT_EQ(row.out_of_place.wrong, 0);
  EXPECT_FALSE(row.in_place.has_value());
  ASSERT_TRUE(row.spending.has_value());
  EXPECT_DOUBLE_EQ(row.spending->data, 4);
  EXPECT_EQ(row.spending->repair, 0);
  EXPECT_GE(row.spending->bytes, 4 * 4096);
  EXPECT_GT(row.spending->processor_us, 0);
}

TEST(Measure, RowStatesWhatWasMeasured) {
  Settings settings = small_settings(Operation::reduce_scatter);
  settings.dtype = DataType::i32;
  settings.collective.op = ReduceOp::max;
  const Row row = measure_inproc(2, settings, 4096);
  EXPECT_EQ(row.bytes, 4096u);
  EXPECT_EQ(row.count, 512u);
  EXPECT_EQ(row.type, "int32");
  EXPECT_EQ(row.redop, "max");
  EXPECT_EQ(row.root, -1);
}

}  // namespace
}  // namespace leeway::tools::perf
