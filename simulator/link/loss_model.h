// Decides which packets of a link are lost.
//
// Call lost() once per packet, in the order in which packets are offered. Results depend only on
// the options, the seed and the link. A link may have several models; a packet is lost if any of
// them loses it. Every model is asked about every packet and has its own random stream, so adding
// or removing one does not change the losses of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "engine/random_stream.h"
#include "leeway/status.h"
#include "link/correlated_uniform.h"
#include "link/loss_options.h"
#include "link/markov_loss.h"

namespace leeway::sim {

namespace loss_models {

struct None {
  bool lost(std::int64_t, std::uint32_t) { return false; }
};

// netem's `loss random`: a packet is lost if its 32-bit number is at most the threshold. Threshold
// 0 loses nothing.
class Correlated {
 public:
  Correlated(RandomStream random, const RandomLoss& options);
  Correlated(RandomStream random, const Correlated& like) : Correlated(random, like.options_) {}
  bool lost(std::int64_t, std::uint32_t) { return draws_.next() <= threshold_ && threshold_ > 0; }

 private:
  RandomLoss options_;
  CorrelatedUniform draws_;
  std::uint32_t threshold_;
};

class Every {
 public:
  explicit Every(std::uint64_t n) : n_(n), left_(n) {}
  bool lost(std::int64_t, std::uint32_t) {
    if (--left_ > 0) return false;
    left_ = n_;
    return true;
  }

 private:
  std::uint64_t n_;
  std::uint64_t left_;
};

class List {
 public:
  explicit List(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {}
  bool lost(std::int64_t, std::uint32_t) {
    const bool hit = next_ < numbers_.size() && numbers_[next_] == number_;
    next_ += hit;
    ++number_;
    return hit;
  }

 private:
  std::vector<std::uint64_t> numbers_;
  std::size_t next_ = 0;
  std::uint64_t number_ = 0;
};

// Loses packets while the link is down. Times must not go back.
class Window {
 public:
  explicit Window(std::vector<DownTime> windows) : windows_(std::move(windows)) {}
  bool lost(std::int64_t now_ns, std::uint32_t) {
    while (next_ < windows_.size() && now_ns >= windows_[next_].until_ns) ++next_;
    return next_ < windows_.size() && now_ns >= windows_[next_].from_ns;
  }

 private:
  std::vector<DownTime> windows_;
  std::size_t next_ = 0;
};

class Trace {
 public:
  explicit Trace(std::vector<bool> lost)
      : lost_(std::make_shared<const std::vector<bool>>(std::move(lost))) {}
  bool lost(std::int64_t, std::uint32_t) {
    const bool hit = (*lost_)[next_];
    if (++next_ == lost_->size()) next_ = 0;
    return hit;
  }

 private:
  std::shared_ptr<const std::vector<bool>> lost_;  // long, and shared by many links
  std::size_t next_ = 0;
};

class Size {
 public:
  explicit Size(std::uint32_t max_bytes) : max_bytes_(max_bytes) {}
  bool lost(std::int64_t, std::uint32_t bytes) { return bytes > max_bytes_; }

 private:
  std::uint32_t max_bytes_;
};

}  // namespace loss_models

class LossModel {
 public:
  // `link` is the number of the link, below 2^48. An empty list loses nothing.
  static Result<LossModel> make(std::span<const LossOptions> any_of, std::uint64_t seed,
                                std::uint64_t link);

  // Returns the model that make() would give for another link, but sharing the large tables. Call
  // it before any call of lost().
  LossModel for_link(std::uint64_t seed, std::uint64_t link) const;

  bool loses_nothing() const { return parts_.empty(); }

  // Times must not go back.
  bool lost(std::int64_t now_ns, std::uint32_t bytes) {
    bool any = false;
    for (Part& part : parts_) {
      any |= std::visit([&](auto& model) { return model.lost(now_ns, bytes); }, part);
    }
    return any;
  }

 private:
  using Part =
      std::variant<loss_models::None, MarkovLoss, loss_models::Correlated, loss_models::Every,
                   loss_models::List, loss_models::Window, loss_models::Trace, loss_models::Size>;
  static Part make_part(const LossOptions& options, const RandomStream& random);
  static RandomStream stream(std::uint64_t seed, std::uint64_t link, std::size_t part);

  std::vector<Part> parts_;
};

}  // namespace leeway::sim
