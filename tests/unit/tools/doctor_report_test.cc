#include "doctor/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace leeway::tools::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Findings kMixed = {
    {"Machine", "cores", Verdict::ok, "2 usable", ""},
    {"Network", "receive buffer", Verdict::warn, "208 KiB", "sudo sysctl -w x=y"},
    {"Machine", "kernel", Verdict::info, "Linux", ""}};

TEST(DoctorText, GroupsSectionsAndAlignsValues) {
  EXPECT_EQ(to_text(kMixed, false),
            "Machine\n"
            "  OK       cores   2 usable\n"
            "           kernel  Linux\n"
            "\n"
            "Network\n"
            "  WARN     receive buffer  208 KiB\n"
            "                           -> sudo sysctl -w x=y\n"
            "\n"
            "Leeway runs here; 1 thing could be better.\n");
}

TEST(DoctorText, UsesColourOnlyWhenAsked) {
  EXPECT_THAT(to_text(kMixed, false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(kMixed, true), HasSubstr("\x1b[33mWARN"));
}

TEST(DoctorText, SumsUp) {
  EXPECT_THAT(to_text(Findings{{"A", "a", Verdict::ok, "", ""}}, false),
              HasSubstr("Leeway runs here, and nothing could be better."));
  const Findings bad = {{"A", "a", Verdict::missing, "", ""},
                        {"A", "b", Verdict::warn, "", ""},
                        {"A", "c", Verdict::warn, "", ""}};
  EXPECT_THAT(to_text(bad, false),
              HasSubstr("Leeway does not run here: 1 missing, 2 things could be better."));
}

TEST(DoctorExitCode, IsNonzeroOnlyWhenSomethingIsMissing) {
  EXPECT_EQ(exit_code_of(kMixed), 0);
  EXPECT_EQ(exit_code_of(Findings{{"A", "a", Verdict::missing, "", ""}}), 1);
}

TEST(DoctorJson, HoldsEveryFinding) {
  const auto document = nlohmann::json::parse(to_json(kMixed));
  ASSERT_EQ(document["findings"].size(), 3u);
  EXPECT_EQ(document["findings"][1]["section"], "Network");
  EXPECT_EQ(document["findings"][1]["name"], "receive buffer");
  EXPECT_EQ(document["findings"][1]["verdict"], "warn");
  EXPECT_EQ(document["findings"][1]["value"], "208 KiB");
  EXPECT_EQ(document["findings"][1]["remedy"], "sudo sysctl -w x=y");
  EXPECT_EQ(document["warnings"], 1);
  EXPECT_EQ(document["missing"], 0);
}

TEST(DoctorJson, SurvivesBytesThatAreNotText) {
  const Findings odd = {{"Environment", "LEEWAY_LOG", Verdict::ok, "\xff\xfe", ""}};
  EXPECT_TRUE(nlohmann::json::accept(to_json(odd)));
}

TEST(DoctorBytesText, ChoosesTheUnit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(212'992), "208 KiB");
  EXPECT_EQ(bytes_text(8 << 20), "8 MiB");
  EXPECT_EQ(bytes_text(1'500'000), "1.4 MiB");
}

}  // namespace
}  // namespace leeway::tools::doctor
