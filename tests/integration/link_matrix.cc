#include "integration/link_matrix.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "integration/exact_expectation.h"
#include "integration/lossy_expectation.h"

namespace leeway::integration {
namespace {

// Time limit of a scenario. It is long, because emulated machines are slow.
constexpr std::chrono::seconds kMatrixPatience(240);

// Element types do not change what is sent, so all of them are tested only without netem.
std::string types_over(const LinkCondition& link) {
  return *link.netem == '\0' ? "types=1" : "types=0";
}

}  // namespace

LinkMatrix::LinkMatrix(Environment environment) : environment_(std::move(environment)) {}

void LinkMatrix::SetUp() {
  std::string obstacle;
  links_ = EmulatedLinks::create(GetParam().netem, obstacle);
  if (links_ == nullptr) GTEST_SKIP() << obstacle;
}

std::vector<Facts> LinkMatrix::run(const std::vector<std::string>& scenario,
                                   const Environment& more) {
  const auto start = Clock::now();
  const auto& addresses = links_->addresses();
  RankSetup setup{.ranks = static_cast<int>(addresses.size()),
                  .scenario = scenario,
                  .environment = more,
                  .rendezvous = addresses[0] + ":" + std::to_string(free_port())};
  setup.environment.insert(environment_.begin(), environment_.end());
  for (const std::string& address : addresses)
    setup.environment_of.push_back({{"LEEWAY_BIND", address}});
  auto all = RankGroup(setup).finish(kMatrixPatience);
  const std::chrono::duration<double> took = Clock::now() - start;
  const auto packets = links_->packets();
  std::printf(
      "%s over %s: %.1f s; links took %llu of %llu packets; first-pass loss of rank 0 %.4f\n",
      scenario[0].c_str(), GetParam().name, took.count(),
      static_cast<unsigned long long>(packets.lost), static_cast<unsigned long long>(packets.sent),
      all[0].is_object() ? all[0].value("loss_first_pass", -1.0) : -1.0);
  return all;
}

void LinkMatrix::expect_loss_of_links(const std::vector<Facts>& all) {
  const LinkCondition& link = GetParam();
  const auto packets = links_->packets();
  if (*link.netem != '\0') {
    // Packets must have passed these links; otherwise nothing was tested.
    const double sent = static_cast<double>(packets.sent);
    EXPECT_GT(sent, all[0]["packets"].get<double>());
    EXPECT_NEAR(static_cast<double>(packets.lost) / sent, link.loss,
                10 * std::sqrt(link.loss * (2 * link.burst - 1) / sent));
  }
  if (!link.in_order) return;
  for (const Facts& facts : all) expect_loss_near(facts, link.loss, link.burst);
}

void LinkMatrix::expect_exact_operations() {
  const auto all = run({"collectives", "elements_max=16384", types_over(GetParam())});
  for (const Facts& facts : all) ASSERT_NO_FATAL_FAILURE(expect_right(facts));
  expect_loss_of_links(all);
}

void LinkMatrix::expect_lossy_operations() {
  const auto all = run({"lossy_operations", "elements_max=16384", types_over(GetParam())});
  for (const Facts& facts : all) ASSERT_NO_FATAL_FAILURE(expect_no_problem(facts));
  expect_loss_of_links(all);
}

void LinkMatrix::expect_lossy_averages() {
  const auto all = run({"lossy_average", "delivery=best_effort", "elements=65536", "rounds=10"});
  if (GetParam().loss > 0.0) return expect_lossy_average(all, GetParam().loss);
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    EXPECT_LT(facts["nmse"], 1e-13) << facts;  // rounding of float32 only
  }
}

}  // namespace leeway::integration
