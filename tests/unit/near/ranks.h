// Ranks that are threads, over one arena in ordinary memory, with a hand clock.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "near/caller.h"

namespace leeway::near {

class Ranks {
 public:
  // `folder` is where regions are made.
  explicit Ranks(int size, std::size_t slot_bytes = 4096, const std::string& folder = "/dev/shm")
      : shape_{size, slot_bytes}, memory_(shape_.bytes()), issued_(static_cast<std::size_t>(size)) {
    for (Rank rank = 0; rank < size; ++rank) {
      stations_.push_back(std::make_unique<Station>(
          Arena(memory_.data(), shape_, rank),
          Surroundings{.now = [this] { return now(); },
                       .look = [this](Rank& about) { return look(about); }}));
      callers_.push_back(
          std::make_unique<Caller>(*stations_.back(), folder,
                                   "leeway-test-" + std::to_string(::getpid()) + "-" +
                                       std::to_string(reinterpret_cast<std::uintptr_t>(this))));
    }
  }

  int size() const { return shape_.ranks; }
  Caller& caller(Rank rank) { return *callers_[rank]; }
  Station& station(Rank rank) { return *stations_[rank]; }
  Line& line(Rank rank) { return stations_[rank]->arena().own_line(); }

  Instant now() const { return {now_ns_.load()}; }
  void advance(Duration by) { now_ns_ += by.count(); }
  // Makes all ranks hear `status` when they look after their peers. The status is about rank
  // `about`.
  void hear(const Status& status, Rank about = kNoRank) {
    about_ = about;
    heard_ = std::make_unique<Status>(status);
    told_ = heard_.get();
  }

  // Runs `body` on all ranks at the same time.
  void each(const std::function<void(Rank)>& body) {
    std::vector<Rank> all(static_cast<std::size_t>(size()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Rank>(i);
    each(all, body);
  }
  static void each(const std::vector<Rank>& ranks, const std::function<void(Rank)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(ranks.size());
    for (const Rank rank : ranks) threads.emplace_back([&body, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

  Caller::Outcome run(Rank rank, const collective::OperationSpec& spec) {
    CollectiveReport report;
    return caller(rank).run(spec, next_number(rank), now(), report);
  }
  // Returns the number of the rank's next call.
  std::uint64_t next_number(Rank rank) { return ++issued_[rank]; }
  // The rank makes its next call by datagrams.
  void go_elsewhere(Rank rank) { station(rank).go_elsewhere(next_number(rank)); }
  // Waits until the rank has posted at least `progress`.
  void await(Rank rank, std::uint64_t progress) {
    while (line(rank).progress.load() < progress) std::this_thread::yield();
  }

 private:
  Status look(Rank& about) const {
    const Status* const told = told_.load();
    about = about_;
    return told == nullptr ? Status() : *told;
  }

  // Pages that a forked child shares, like those of a file.
  class SharedPages {
   public:
    explicit SharedPages(std::size_t bytes)
        : bytes_(bytes),
          place_(
              ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
    ~SharedPages() { ::munmap(place_, bytes_); }
    SharedPages(const SharedPages&) = delete;
    SharedPages& operator=(const SharedPages&) = delete;
    std::byte* data() const { return static_cast<std::byte*>(place_); }

   private:
    const std::size_t bytes_;
    void* const place_;
  };

  const Shape shape_;
  const SharedPages memory_;
  std::vector<std::uint64_t> issued_;
  std::atomic<std::int64_t> now_ns_{1'000'000};
  std::unique_ptr<Status> heard_;
  std::atomic<Rank> about_{kNoRank};
  std::atomic<const Status*> told_{nullptr};
  std::vector<std::unique_ptr<Station>> stations_;
  std::vector<std::unique_ptr<Caller>> callers_;
};

inline collective::OperationSpec all_reduce_of(std::vector<float>& values) {
  return {.kind = collective::OperationKind::all_reduce,
          .input = {values.data(), values.size(), DataType::f32},
          .output = {values.data(), values.size(), DataType::f32}};
}

}  // namespace leeway::near
