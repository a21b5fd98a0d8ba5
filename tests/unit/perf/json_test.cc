#include "perf/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace leeway::tools::perf {
namespace {

Row row_of_4_kib() {
  Row row;
  row.bytes = 4096;
  row.type = "float";
  row.out_of_place = {.time_us = 50,
                      .p50_us = 40,
                      .p99_us = 90,
                      .algbw_GBps = 0,
                      .busbw_GBps = 0,
                      .wrong = 0,
                      .nmse = 0};
  row.loss = 0.1;
  row.transport = "ucx";
  return row;
}

nlohmann::json rows_as_json(const Row& row) {
  Settings settings;
  FaultOptions faults;
  faults.loss = 0.1;
  return nlohmann::json::parse(to_json({&row, 1}, settings, faults, 4));
}

TEST(ToJson, RowHasEveryDocumentedKey) {
  const auto rows = rows_as_json(row_of_4_kib());
  ASSERT_EQ(rows.size(), 1u);
  for (const char* key :
       {"op", "ranks", "transport", "bytes", "dtype", "codec", "spread_codec", "codec_used",
        "gradient_to_noise", "delivery", "loss_injected", "loss_observed", "time_us_p50",
        "time_us_p99", "algbw_GBps", "busbw_GBps", "wrong", "nmse"}) {
    EXPECT_TRUE(rows[0].contains(key)) << key;
  }
  EXPECT_EQ(rows[0]["op"], "all_reduce");
  EXPECT_EQ(rows[0]["ranks"], 4);
  EXPECT_EQ(rows[0]["transport"], "ucx");
  EXPECT_EQ(rows[0]["loss_injected"], 0.1);
}

TEST(ToJson, BandwidthIsThatOfTheMedian) {
  const auto rows = rows_as_json(row_of_4_kib());
  EXPECT_DOUBLE_EQ(rows[0]["algbw_GBps"], 0.1024);
  EXPECT_DOUBLE_EQ(rows[0]["busbw_GBps"], 0.1536);
}

TEST(ToJson, UncheckedIsNull) {
  Row row = row_of_4_kib();
  EXPECT_EQ(rows_as_json(row)[0]["wrong"], 0);
  row.out_of_place.wrong.reset();
  EXPECT_TRUE(rows_as_json(row)[0]["wrong"].is_null());
}

TEST(ToJson, NamesTheCodecsAskedForAndTheOneUsed) {
  Settings settings;
  settings.collective.codec = Codec::automatic;
  Row row = row_of_4_kib();
  row.codec_used = "fp8_e4m3_block";
  const auto json_of = [&] {
    return nlohmann::json::parse(to_json({&row, 1}, settings, {}, 4))[0];
  };
  EXPECT_EQ(json_of()["codec"], "automatic");
  EXPECT_EQ(json_of()["spread_codec"], "automatic");
  EXPECT_EQ(json_of()["codec_used"], "fp8_e4m3_block");
  settings.collective.spread_codec = Codec::bf16;
  EXPECT_EQ(json_of()["spread_codec"], "bf16");
  settings.operation = Operation::reduce_scatter;
  EXPECT_TRUE(json_of()["spread_codec"].is_null());
}

TEST(ToJson, NoiselessIsNull) {
  Row row = row_of_4_kib();
  EXPECT_TRUE(rows_as_json(row)[0]["gradient_to_noise"].is_null());
  row.gradient_to_noise = 2.5;
  EXPECT_EQ(rows_as_json(row)[0]["gradient_to_noise"], 2.5);
}

TEST(ToJson, WhatACallCostIsThereOnlyBackToBack) {
  Row row = row_of_4_kib();
  EXPECT_FALSE(rows_as_json(row)[0].contains("datagrams"));
  row.spending = Spending{.data = 24, .report = 1.5, .bytes = 9000, .processor_us = 60};
  const auto json = rows_as_json(row)[0];
  EXPECT_EQ(json["datagrams"]["data"], 24);
  EXPECT_EQ(json["datagrams"]["report"], 1.5);
  EXPECT_EQ(json["bytes_sent"], 9000);
  EXPECT_EQ(json["processor_us"], 60);
}

TEST(ToJson, InPlaceIsThereOnlyWhenMeasured) {
  Row row = row_of_4_kib();
  EXPECT_FALSE(rows_as_json(row)[0].contains("in_place"));
  row.in_place = row.out_of_place;
  EXPECT_EQ(rows_as_json(row)[0]["in_place"]["time_us_p50"], 40);
}

}  // namespace
}  // namespace leeway::tools::perf
