// If ranks do not mean the same operation, all must fail with an error that tells what each side
// has.
#include <gtest/gtest.h>

#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

struct Disagreement {
  const char* name;
  OperationKind kind;
  std::size_t count;
  std::function<void(OperationSpec&)> change;  // changes the odd rank's call
  const char* usual;                           // must be in both texts
  const char* odd;
};

class Mismatch : public ::testing::TestWithParam<std::tuple<Disagreement, int>> {};

TEST_P(Mismatch, IsAnErrorThatNamesBothSidesOnEveryRank) {
  const Disagreement& c = std::get<0>(GetParam());
  const int size = std::get<1>(GetParam());
  const Rank odd = static_cast<Rank>(size - 1);
  EngineGroup group(GroupOptions{.size = size});
  std::vector<std::vector<float>> in(size, std::vector<float>(200000, 1.0f));
  std::vector<std::vector<float>> out(size, std::vector<float>(200000));
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = c.kind, .peer = 0};
    spec.input = TensorView(in[rank].data(), c.count, DataType::f32);
    spec.output = TensorView(out[rank].data(), c.count, DataType::f32);
    spec.options.delivery = exact(2s);
    if (rank == odd) c.change(spec);
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 1s)) << "found out long before the deadline";
  for (Rank rank = 0; rank < size; ++rank) {
    const Status& status = requests[rank]->status;
    const std::string text(status.text());
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << "rank " << rank << ": " << text;
    EXPECT_NE(text.find(c.usual), std::string::npos) << text;
    EXPECT_NE(text.find(c.odd), std::string::npos) << text;
    EXPECT_NE(text.find("rank " + std::to_string(rank) + " has"), std::string::npos) << text;
  }
  EXPECT_TRUE(group.settle());
}

std::vector<Disagreement> disagreements() {
  std::vector<Disagreement> rows;
  for (const std::size_t count : {100, 100000}) {
    const bool small = count == 100;
    const auto name = [&](const char* few, const char* many) { return small ? few : many; };
    const auto kind = OperationKind::all_reduce;
    rows.push_back(
        {name("CountOfFew", "CountOfMany"), kind, count,
         [count](OperationSpec& spec) { spec.input.count = spec.output.count = count + 1; },
         small ? "[100]" : "[100000]", small ? "[101]" : "[100001]"});
    rows.push_back(
        {name("TypeOfFew", "TypeOfMany"), kind, count,
         [](OperationSpec& spec) { spec.input.dtype = spec.output.dtype = DataType::i32; }, "float",
         "int32"});
    rows.push_back({name("ReductionOfFew", "ReductionOfMany"), kind, count,
                    [](OperationSpec& spec) { spec.options.op = ReduceOp::max; }, " sum ",
                    " max "});
    rows.push_back({name("CodecOfFew", "CodecOfMany"), kind, count,
                    [](OperationSpec& spec) { spec.options.codec = Codec::bf16; }, "native/native",
                    "bf16/bf16"});
    rows.push_back(
        {name("CodecSettingOfFew", "CodecSettingOfMany"), kind, count,
         [](OperationSpec& spec) { spec.options.codec = parse_codec("fp32:rotate").value(); },
         "native/native", "fp32:rotate/fp32:rotate"});
    rows.push_back({name("DeliveryOfFew", "DeliveryOfMany"), kind, count,
                    [](OperationSpec& spec) { spec.options.delivery = best_effort(2s); }, " exact ",
                    " best_effort "});
    rows.push_back({name("OperationOfFew", "OperationOfMany"), kind, count,
                    [](OperationSpec& spec) { spec.kind = OperationKind::broadcast; },
                    "has all_reduce", "has broadcast"});
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Of, Mismatch,
                         ::testing::Combine(::testing::ValuesIn(disagreements()),
                                            ::testing::Values(2, 4)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param).name) + "At" +
                                  std::to_string(std::get<1>(row.param)) + "Ranks";
                         });

// These options may differ between ranks, by the table above CollectiveOptions in leeway/options.h.
// The tests above and the program swarm cover options that must be equal.
TEST(MayDiffer, WhatEachRankChoosesForItself) {
  std::vector<float> residual(1'000, 0.5f);
  std::vector<float> control(1'000, 0.0f);
  const std::vector<double> weights = {1.0, 2.0, 1.0, 0.0};
  struct Choice {
    const char* name;
    std::function<void(CollectiveOptions&)> usual;
    std::function<void(CollectiveOptions&)> odd;
  };
  const auto average = [](CollectiveOptions& options) { options.op = ReduceOp::avg; };
  const auto lossy = [](CollectiveOptions& options) { options.delivery = bounded(0.1, 10s); };
  const std::vector<Choice> choices = {
      {"deadline", nullptr, [](auto& options) { options.delivery.deadline = 20s; }},
      {"loss_max", lossy, [](auto& options) { options.delivery.loss_max = 0.3; }},
      {"factor", [](auto& options) { options.op = ReduceOp::premul_sum; },
       [](auto& options) { options.factor = 3; }},
      {"weight", average, [](auto& options) { options.weight = 4.0; }},
      {"owner_weights",
       [&](auto& options) {
         average(options);
         options.confirm_use = true;
       },
       [&](auto& options) { options.owner_weights = weights; }},
      {"keep_non_finite", lossy, [](auto& options) { options.keep_non_finite = true; }},
      {"residual", nullptr, [&](auto& options) { options.residual = residual; }},
      {"control_variate",
       [&](auto& options) {
         lossy(options);
         options.estimator = Estimator::augmented;
       },
       [&](auto& options) { options.control_variate = control; }},
      {"rounding", [](auto& options) { options.codec = Codec::bf16; },
       [](auto& options) { options.codec = *parse_codec("bf16:stochastic"); }},
  };
  for (const Choice& choice : choices) {
    EngineGroup group(GroupOptions{.size = 4});
    std::vector<std::vector<float>> data(4, std::vector<float>(1'000, 1.0f));
    const auto requests = group.submit_all([&](Rank rank) {
      OperationSpec spec{.kind = OperationKind::all_reduce,
                         .input = std::span(data[rank]),
                         .output = std::span(data[rank])};
      if (choice.usual) choice.usual(spec.options);
      if (rank == 2) choice.odd(spec.options);
      return spec;
    });
    ASSERT_TRUE(group.run(requests, 2s)) << choice.name;
    for (const Request* request : requests)
      EXPECT_TRUE(request->status.ok()) << choice.name << ": " << request->status.text();
  }
}

// These options have a meaning in some calls only, so they may differ in others.
TEST(MayDiffer, WhatHasNoMeaningInTheCall) {
  using enum OperationKind;
  struct Choice {
    const char* name;
    std::vector<OperationKind> kinds;
    std::function<void(CollectiveOptions&)> odd;
  };
  const std::vector<Choice> choices = {
      {"estimator",
       {all_reduce, reduce_scatter, all_gather, broadcast},
       [](auto& options) { options.estimator = Estimator::stratified; }},
      {"op", {all_gather, broadcast}, [](auto& options) { options.op = ReduceOp::max; }},
      {"spread",
       {reduce_scatter, all_gather, broadcast},
       [](auto& options) { options.spread = Delivery::Kind::bounded; }},
      {"spread_codec",
       {reduce_scatter, all_gather, broadcast},
       [](auto& options) { options.spread_codec = Codec::bf16; }},
  };
  for (const Choice& choice : choices) {
    for (const OperationKind kind : choice.kinds) {
      EngineGroup group(GroupOptions{.size = 4});
      std::vector<std::vector<float>> whole(4, std::vector<float>(4'000, 1.0f));
      std::vector<std::vector<float>> part(4, std::vector<float>(1'000, 1.0f));
      const auto requests = group.submit_all([&](Rank rank) {
        OperationSpec spec{.kind = kind,
                           .input = std::span(kind == all_gather ? part[rank] : whole[rank]),
                           .output = std::span(kind == reduce_scatter ? part[rank] : whole[rank])};
        if (kind == broadcast) spec.peer = 0;
        if (rank == 2) choice.odd(spec.options);
        return spec;
      });
      ASSERT_TRUE(group.run(requests, 2s)) << choice.name;
      for (const Request* request : requests) {
        EXPECT_TRUE(request->status.ok())
            << choice.name << " in " << wire::to_string(kind) << ": " << request->status.text();
      }
    }
  }
}

TEST(Mismatches, AnotherEstimatorInALossyCallFailsOnAllRanks) {
  EngineGroup group(GroupOptions{.size = 3});
  std::vector<std::vector<float>> data(3, std::vector<float>(1'000, 1.0f));
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = OperationKind::all_reduce,
                       .input = std::span(data[rank]),
                       .output = std::span(data[rank])};
    spec.options.delivery = bounded(0.1, 10s);
    if (rank == 2) spec.options.estimator = Estimator::stratified;
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 2s));
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch);
    EXPECT_NE(request->status.text().find("stratified"), std::string_view::npos);
  }
}

// Rank 3 comes when all others have found the mismatch and left. It must hear what they disagreed
// about, and not that they left.
TEST(MismatchOfLatecomers, FailNamingTheOddRank) {
  for (const Delivery& delivery : {exact(10s), best_effort(10s)}) {
    for (const std::size_t count : {100, 100000}) {
      EngineGroup group(GroupOptions{.size = 4});
      std::vector<std::vector<float>> data(4, std::vector<float>(count + 1, 1.0f));
      const auto submit = [&](Rank rank) {
        OperationSpec spec{.kind = OperationKind::all_reduce};
        spec.input = spec.output =
            TensorView(data[rank].data(), rank == 1 ? count + 1 : count, DataType::f32);
        spec.options.delivery = delivery;
        return &group.submit(rank, spec);
      };
      const std::vector<Request*> prompt = {submit(0), submit(1), submit(2)};
      ASSERT_TRUE(group.run(prompt, 1s));
      group.run_until([] { return false; }, 50ms);
      Request* const late = submit(3);
      ASSERT_TRUE(group.run({late}, 1s)) << "long before the deadline";
      EXPECT_EQ(late->status.code(), StatusCode::kMismatch) << late->status.text();
      EXPECT_NE(late->status.text().find("rank 1 has"), std::string_view::npos)
          << late->status.text();
      EXPECT_TRUE(group.settle());
      std::vector<Request*> next;
      for (Rank rank = 0; rank < 4; ++rank) {
        OperationSpec spec{.kind = OperationKind::all_reduce};
        spec.input = spec.output = TensorView(data[rank].data(), count, DataType::f32);
        next.push_back(&group.submit(rank, spec));
      }
      ASSERT_TRUE(group.run(next, 1s));
      for (const Request* request : next)
        EXPECT_TRUE(request->status.ok()) << request->status.text();
    }
  }
}

TEST(MismatchOfMessages, ALongerSendThanItsReceiveFailsOnBothSides) {
  for (const std::size_t count : {100, 100000}) {
    EngineGroup group(GroupOptions{.size = 2});
    std::vector<float> out(count + 1, 1.0f), in(count);
    OperationSpec send{.kind = OperationKind::send, .input = std::span(out), .peer = 1};
    OperationSpec receive{.kind = OperationKind::recv, .output = std::span(in), .peer = 0};
    send.options.delivery = receive.options.delivery = exact(2s);
    Request& sent = group.submit(0, send);
    Request& received = group.submit(1, receive);
    ASSERT_TRUE(group.run({&sent, &received}, 3s));
    EXPECT_EQ(received.status.code(), StatusCode::kMismatch) << received.status.text();
    // The sender's call ended when its data had been copied. Its round must fail nevertheless.
    if (count == 100) {
      EXPECT_TRUE(sent.status.ok());
      EXPECT_EQ(group.engine(0).endpoint().counters().rounds_failed, 1u);
    } else {
      EXPECT_EQ(sent.status.code(), StatusCode::kMismatch) << sent.status.text();
      EXPECT_NE(
          sent.status.text().find("rank 0 sends 100001 elements, and the receive of rank 1 has"),
          std::string_view::npos)
          << sent.status.text();
    }
  }
}

TEST(MismatchOfRoots, TwoRanksThatBothBroadcastManyElementsFail) {
  EngineGroup group(GroupOptions{.size = 2});
  std::array<std::vector<float>, 2> data;
  data.fill(std::vector<float>(100000, 1.0f));
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = OperationKind::broadcast, .peer = rank};
    spec.input = std::span(data[rank]);
    spec.output = std::span(data[rank]);
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 1s));
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch);
    EXPECT_NE(request->status.text().find("root 0"), std::string_view::npos)
        << request->status.text();
    EXPECT_NE(request->status.text().find("root 1"), std::string_view::npos)
        << request->status.text();
  }
}

// A codec that cannot change the bytes of the tensor must be treated as native.
TEST(Codecs, ThatChangeNothingAreNative) {
  for (const OperationKind kind : {OperationKind::all_reduce, OperationKind::all_gather}) {
    EngineGroup group(GroupOptions{.size = 2});
    std::array<std::vector<float>, 2> in;
    std::array<std::vector<float>, 2> out;
    const auto requests = group.submit_all([&](Rank rank) {
      in[rank].assign(1'000, 1.0f);
      out[rank].assign(kind == OperationKind::all_gather ? 2'000 : 1'000, 0.0f);
      OperationSpec spec{
          .kind = kind, .input = std::span(in[rank]), .output = std::span(out[rank])};
      spec.options.codec = rank == 0 ? Codec::native : Codec::fp32;
      return spec;
    });
    ASSERT_TRUE(group.run(requests, 1s));
    for (const Request* request : requests)
      EXPECT_TRUE(request->status.ok()) << request->status.text();
  }
}

// Submits an exact all_reduce on ranks 0, 1 and 2, in which rank 0 has a short deadline.
std::vector<Request*> submit_to_three(EngineGroup& group, std::vector<std::vector<float>>& data) {
  std::vector<Request*> requests;
  for (const Rank rank : {0, 1, 2}) {
    OperationSpec spec{.kind = OperationKind::all_reduce,
                       .input = std::span(data[rank]),
                       .output = std::span(data[rank])};
    spec.options.delivery = exact(rank == 0 ? 100ms : 10s);
    requests.push_back(&group.submit(rank, spec));
  }
  return requests;
}

// Rank 0's deadline ends its call. The others must hear at once that their calls cannot succeed.
TEST(Failure, IsToldToRanksThatWaitForIt) {
  for (const std::size_t elements : {10u, 100'000u}) {
    EngineGroup group(GroupOptions{.size = 4});
    std::vector<std::vector<float>> data(4, std::vector<float>(elements, 1.0f));
    group.freeze(3);
    const std::vector<Request*> requests = submit_to_three(group, data);
    ASSERT_TRUE(group.run(requests, 1s)) << elements;
    for (const Request* request : requests)
      EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded) << request->status.text();
    EXPECT_NE(requests[1]->status.text().find("rank 0 gave it up at its own deadline"),
              std::string_view::npos)
        << requests[1]->status.text();
  }
}

// Rank 2 hears of rank 0's deadline only from rank 1, whose own deadline has not come. The error of
// rank 2 must still name rank 0.
TEST(Failure, NamesTheRankWhoseDeadlineItWasAtSecondHand) {
  EngineGroup group(GroupOptions{.size = 4});
  std::vector<std::vector<float>> data(4, std::vector<float>(100'000, 1.0f));
  group.freeze(3);
  group.filter = [&](Rank from, Rank to, ByteSpan) {
    return from != 0 || to != 2 || group.now() < Instant{0} + 90ms;
  };
  const std::vector<Request*> requests = submit_to_three(group, data);
  ASSERT_TRUE(group.run(requests, 1s));
  for (const int told : {1, 2}) {
    EXPECT_NE(requests[told]->status.text().find(
                  "rank 0 gave it up at its own deadline, waiting for rank 3"),
              std::string_view::npos)
        << requests[told]->status.text();
  }
}

// Few elements are copied, so a root's call ends without waiting. Its mismatch is only counted.
TEST(MismatchOfRoots, FewElementsFailWhereSomebodyWaitsAndAreCountedWhereNobodyDoes) {
  EngineGroup group(GroupOptions{.size = 3});
  std::array<std::vector<float>, 3> data;
  data.fill(std::vector<float>(10, 1.0f));
  const auto requests = group.submit_all([&](Rank rank) {
    OperationSpec spec{.kind = OperationKind::broadcast,
                       .peer = static_cast<Rank>(rank == 2 ? 1 : 0)};
    spec.input = std::span(data[rank]);
    spec.output = std::span(data[rank]);
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 1s));
  EXPECT_EQ(requests[2]->status.code(), StatusCode::kMismatch) << requests[2]->status.text();
  EXPECT_TRUE(group.settle());
  EXPECT_EQ(group.engine(0).endpoint().counters().rounds_failed, 1u);
}

}  // namespace
}  // namespace leeway::collective
