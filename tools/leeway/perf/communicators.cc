#include "perf/communicators.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace leeway::tools::perf {
namespace {

constexpr std::size_t kElements = 16'384;  // 64 KiB of float

std::int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssAnon:") continue;
    std::int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

Status use_all(std::vector<std::unique_ptr<Communicator>>& communicators) {
  std::vector<std::vector<float>> data;
  std::vector<Work> works;
  for (auto& communicator : communicators) {
    data.emplace_back(kElements, 1.0f);
    works.push_back(communicator->all_reduce_async(std::span(data.back())));
  }
  return Work::wait_all(works);
}

}  // namespace

Footprint measure_footprint() {
  namespace fs = std::filesystem;
  Footprint now;
  for ([[maybe_unused]] const auto& task : fs::directory_iterator("/proc/self/task")) ++now.threads;
  for (const auto& file : fs::directory_iterator("/proc/self/fd")) {
    std::error_code vanished;
    const std::string target = fs::read_symlink(file.path(), vanished).string();
    now.sockets += target.rfind("socket:", 0) == 0;
  }
  now.memory_bytes = resident_bytes();
  return now;
}

Result<CommunicatorCost> open_communicators(
    Communicator& world, int count, const Footprint& before,
    std::vector<std::unique_ptr<Communicator>>& communicators) {
  if (const auto met = world.barrier(); !met.ok()) return met.status();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    auto communicator = world.split(0, 0);
    if (!communicator.ok()) return communicator.status();
    communicators.push_back(std::move(*communicator));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (Status status = use_all(communicators); !status.ok()) return status;
  const Footprint own = measure_footprint() - before;
  std::array<double, 4> most = {took.count(), static_cast<double>(own.threads),
                                static_cast<double>(own.sockets),
                                static_cast<double>(own.memory_bytes)};
  const auto agreed = world.all_reduce(std::span(most), {.op = ReduceOp::max});
  if (!agreed.ok()) return agreed.status();
  return CommunicatorCost{count,
                          most[0],
                          {static_cast<std::int64_t>(most[1]), static_cast<std::int64_t>(most[2]),
                           static_cast<std::int64_t>(most[3])}};
}

}  // namespace leeway::tools::perf
