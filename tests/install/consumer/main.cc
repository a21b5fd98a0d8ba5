// A program outside Leeway's source tree: two ranks in one process add two vectors.

#include <leeway/leeway.h>

#include <cstdio>
#include <thread>
#include <vector>

namespace {

bool add_up(leeway::Communicator& communicator) {
  std::vector<float> gradient(1000, static_cast<float>(communicator.rank() + 1));
  const auto report = communicator.all_reduce(std::span(gradient));
  if (!report.ok())
    std::fprintf(stderr, "rank %d: %s\n", communicator.rank(), report.status().c_str());
  return report.ok() && gradient.front() == 3.0f && gradient.back() == 3.0f;
}

}  // namespace

int main() {
  auto ranks = leeway::Communicator::create_inproc(2);
  if (!ranks.ok()) {
    std::fprintf(stderr, "%s\n", ranks.status().c_str());
    return 1;
  }
  bool other_right = false;
  std::thread other([&] { other_right = add_up(*(*ranks)[1]); });
  const bool right = add_up(*(*ranks)[0]);
  other.join();
  std::printf("Leeway %s: %s\n", LEEWAY_VERSION_STRING, right && other_right ? "right" : "WRONG");
  return right && other_right ? 0 : 1;
}
