#include "link/loss_model.h"

#include <type_traits>

#include "base/contracts.h"
#include "link/loss_chain.h"

namespace leeway::sim {
namespace {

// A random stream's name has the link's number in its lower bits and the model's number above.
constexpr int kLinkBits = 48;

// Rounds a share to a 32-bit number as netem's command does.
std::uint32_t to_netem(double share) {
  return static_cast<std::uint32_t>(share * static_cast<double>(UINT32_MAX) + 0.5);
}

}  // namespace

loss_models::Correlated::Correlated(RandomStream random, const RandomLoss& options)
    : options_(options), draws_(random, options.correlation), threshold_(to_netem(options.loss)) {}

RandomStream LossModel::stream(std::uint64_t seed, std::uint64_t link, std::size_t part) {
  LEEWAY_ASSERT(link >> kLinkBits == 0);
  return RandomStream(seed, link | std::uint64_t{part} << kLinkBits, Purpose::loss);
}

Result<LossModel> LossModel::make(std::span<const LossOptions> any_of, std::uint64_t seed,
                                  std::uint64_t link) {
  LossModel model;
  for (const LossOptions& options : any_of) {
    if (Status status = check_loss(options); !status.ok()) return status;
    model.parts_.push_back(make_part(options, stream(seed, link, model.parts_.size())));
  }
  return model;
}

LossModel LossModel::for_link(std::uint64_t seed, std::uint64_t link) const {
  LossModel model;
  model.parts_.reserve(parts_.size());
  for (const Part& part : parts_) {
    const RandomStream random = stream(seed, link, model.parts_.size());
    const auto restart = [&](const auto& like) -> Part {
      using Model = std::decay_t<decltype(like)>;
      if constexpr (std::is_constructible_v<Model, RandomStream, const Model&>) {
        return Model(random, like);
      } else {
        return like;
      }
    };
    model.parts_.push_back(std::visit(restart, part));
  }
  return model;
}

LossModel::Part LossModel::make_part(const LossOptions& options, const RandomStream& random) {
  const auto make = [&](const auto& model) -> Part {
    using Model = std::decay_t<decltype(model)>;
    if constexpr (std::is_same_v<Model, NoLoss>) {
      return loss_models::None{};
    } else if constexpr (std::is_same_v<Model, RandomLoss>) {
      if (model.correlation > 0) return loss_models::Correlated(random, model);
      return MarkovLoss(random, chain_of(model));
    } else if constexpr (std::is_same_v<Model, EveryLoss>) {
      return loss_models::Every(model.n);
    } else if constexpr (std::is_same_v<Model, ListLoss>) {
      return loss_models::List(model.numbers);
    } else if constexpr (std::is_same_v<Model, WindowLoss>) {
      return loss_models::Window(model.windows);
    } else if constexpr (std::is_same_v<Model, TraceLoss>) {
      return loss_models::Trace(model.lost);
    } else if constexpr (std::is_same_v<Model, SizeLoss>) {
      return loss_models::Size(model.max_bytes);
    } else {
      return MarkovLoss(random, chain_of(model));
    }
  };
  return std::visit(make, options);
}

}  // namespace leeway::sim
