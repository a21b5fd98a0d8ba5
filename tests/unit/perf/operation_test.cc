#include "perf/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::tools::perf {
namespace {

constexpr Operation kAllOperations[] = {
    Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
    Operation::broadcast,  Operation::reduce,         Operation::gather,
    Operation::scatter,    Operation::all_to_all,     Operation::sendrecv};

TEST(ParseOperation, EveryNameIsUnderstood) {
  for (const Operation operation : kAllOperations) {
    const auto parsed = parse_operation(to_string(operation));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, operation);
  }
}

TEST(ParseOperation, UnknownNameIsQuoted) {
  const auto parsed = parse_operation("allreduce");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(std::string(parsed.status().text()), testing::HasSubstr("'allreduce'"));
}

TEST(BusFactor, MatchesNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_reduce, 2), 1.0);
  for (const Operation operation : {Operation::reduce_scatter, Operation::all_gather,
                                    Operation::gather, Operation::scatter, Operation::all_to_all}) {
    EXPECT_DOUBLE_EQ(bus_factor(operation, 4), 0.75) << to_string(operation);
  }
  for (const Operation operation : {Operation::broadcast, Operation::reduce, Operation::sendrecv}) {
    EXPECT_DOUBLE_EQ(bus_factor(operation, 4), 1.0) << to_string(operation);
  }
}

TEST(Layout, FullSizeOperationsUseTheSizeOnBothSides) {
  for (const Operation operation :
       {Operation::all_reduce, Operation::broadcast, Operation::reduce, Operation::sendrecv}) {
    const Layout buffers = layout(operation, 4096, DataType::f32, 4);
    EXPECT_EQ(buffers.count, 1024u);
    EXPECT_EQ(buffers.input_count, 1024u);
    EXPECT_EQ(buffers.output_count, 1024u);
  }
}

TEST(Layout, BlockOperationsDivideTheSizeByTheRanks) {
  const Layout reduce_scatter = layout(Operation::reduce_scatter, 4096, DataType::f32, 4);
  EXPECT_EQ(reduce_scatter.count, 256u);
  EXPECT_EQ(reduce_scatter.input_count, 1024u);
  EXPECT_EQ(reduce_scatter.output_count, 256u);
  const Layout all_gather = layout(Operation::all_gather, 4096, DataType::f32, 4);
  EXPECT_EQ(all_gather.input_count, 256u);
  EXPECT_EQ(all_gather.output_count, 1024u);
  const Layout all_to_all = layout(Operation::all_to_all, 4096, DataType::f32, 4);
  EXPECT_EQ(all_to_all.input_count, 1024u);
  EXPECT_EQ(all_to_all.output_count, 1024u);
}

TEST(Layout, BlocksAreRoundedDownToSixteenBytes) {
  EXPECT_EQ(layout(Operation::all_gather, 4096, DataType::f32, 3).count, 340u);
  EXPECT_EQ(layout(Operation::all_gather, 4096, DataType::i8, 3).count, 1360u);
}

TEST(Layout, NoBufferIsEverEmpty) {
  for (const Operation operation : kAllOperations)
    EXPECT_EQ(layout(operation, 1, DataType::f64, 5).count, 1u);
}

// Asks for the sources of the blocks of rank 2 in a group of 4 ranks with root 1.
TEST(Origin, NamesTheSourceOfEveryBlock) {
  const auto from = [](Operation operation, std::size_t block) {
    return origin(operation, 2, 4, 1, block);
  };
  EXPECT_EQ(from(Operation::all_reduce, 0)->source, std::nullopt);
  EXPECT_EQ(from(Operation::reduce_scatter, 0)->source, std::nullopt);
  EXPECT_EQ(from(Operation::reduce_scatter, 0)->block, 2u);
  EXPECT_EQ(from(Operation::all_gather, 3)->source, 3);
  EXPECT_EQ(from(Operation::all_gather, 3)->block, 0u);
  EXPECT_EQ(from(Operation::broadcast, 0)->source, 1);
  EXPECT_EQ(from(Operation::scatter, 0)->source, 1);
  EXPECT_EQ(from(Operation::scatter, 0)->block, 2u);
  EXPECT_EQ(from(Operation::all_to_all, 3)->source, 3);
  EXPECT_EQ(from(Operation::all_to_all, 3)->block, 2u);
  EXPECT_EQ(from(Operation::sendrecv, 0)->source, 1);
}

TEST(Origin, SendrecvWrapsAround) {
  EXPECT_EQ(origin(Operation::sendrecv, 0, 4, 0, 0)->source, 3);
}

TEST(Origin, OnlyTheRootReceivesInReduceAndGather) {
  EXPECT_FALSE(origin(Operation::reduce, 2, 4, 1, 0));
  EXPECT_FALSE(origin(Operation::gather, 2, 4, 1, 0));
  EXPECT_TRUE(origin(Operation::reduce, 1, 4, 1, 0));
  EXPECT_EQ(origin(Operation::gather, 1, 4, 1, 3)->source, 3);
}

}  // namespace
}  // namespace leeway::tools::perf
