#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "peer.h"

// With "--role NAME ARGUMENTS" this process plays a role in another process's test. Otherwise it
// runs the tests.
int main(int count, char** words) {
  if (count > 2 && std::string_view(words[1]) == "--role") {
    return nccl_net_test::run_role(words[2], std::vector<std::string>(words + 3, words + count),
                                   nccl_net_test::Pipes(STDIN_FILENO, STDOUT_FILENO));
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
