// Tests UDP between four processes over links with the kernel's netem: every operation, exact and
// lossy. Runs in the virtual machine of tools/vm_test.
#include "integration/link_matrix.h"

namespace leeway::integration {
namespace {

class Netem : public LinkMatrix {
 protected:
  Netem() : LinkMatrix({{"LEEWAY_TRANSPORT", "udp"}}) {}
};

TEST_P(Netem, EveryOperationIsExact) {
  expect_exact_operations();
}

TEST_P(Netem, LossyOperationsAreRightInWhatAllBring) {
  expect_lossy_operations();
}

INSTANTIATE_TEST_SUITE_P(Links, Netem, testing::ValuesIn(kLinkConditions), name_of_condition);

class NetemLoss : public Netem {};

TEST_P(NetemLoss, AveragesHaveTheErrorOfTheRatioRule) {
  expect_lossy_averages();
}

INSTANTIATE_TEST_SUITE_P(Links, NetemLoss, testing::Values(kTenthLost), name_of_condition);

}  // namespace
}  // namespace leeway::integration
