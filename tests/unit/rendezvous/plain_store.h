// A store as a caller would write it, with put() and get() only. Counts its calls.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "leeway/rendezvous.h"

namespace leeway::rendezvous {

class PlainStore final : public Rendezvous {
 public:
  Status put(std::string_view key, ByteSpan value) override {
    {
      const std::lock_guard lock(mutex_);
      ++puts_;
      values_[std::string(key)].assign(value.begin(), value.end());
    }
    changed_.notify_all();
    return {};
  }

  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override {
    std::unique_lock lock(mutex_);
    ++gets_;
    const std::string wanted(key);
    const auto there = [&] { return values_.count(wanted) > 0; };
    if (patience > Duration(0) ? changed_.wait_for(lock, patience, there) : there())
      return values_[wanted];
    return Status::error(StatusCode::kDeadlineExceeded, "not there");
  }

  int puts() const { return puts_; }
  int gets() const { return gets_; }
  std::vector<std::string> keys() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) keys.push_back(key);
    return keys;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::byte>> values_;
  int puts_ = 0;
  int gets_ = 0;
};

}  // namespace leeway::rendezvous
