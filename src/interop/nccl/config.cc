#include "interop/nccl/config.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <optional>

#include "interop/nccl/codes.h"

namespace leeway::nccl {
namespace {

constexpr unsigned kConfigMagic = 0xcafebeef;

using Member = int leeway_nccl_config::*;

// The config of NCCL_CONFIG_INITIALIZER, in which no member is set.
leeway_nccl_config left_alone() {
  leeway_nccl_config config{};
  for (const Member member :
       {&leeway_nccl_config::blocking, &leeway_nccl_config::cga_cluster_size,
        &leeway_nccl_config::min_ctas, &leeway_nccl_config::max_ctas,
        &leeway_nccl_config::split_share, &leeway_nccl_config::traffic_class,
        &leeway_nccl_config::collnet_enable, &leeway_nccl_config::cta_policy,
        &leeway_nccl_config::shrink_share, &leeway_nccl_config::nvls_ctas,
        &leeway_nccl_config::channels_per_net_peer, &leeway_nccl_config::nvlink_centric_sched,
        &leeway_nccl_config::graph_usage_mode, &leeway_nccl_config::rma_contexts,
        &leeway_nccl_config::p2p_peers_max, &leeway_nccl_config::graph_stream_ordering})
    config.*member = INT_MIN;
  return config;
}

// Bytes of the struct in nccl.h of this version. Memory behind them is no part of the program's
// config.
std::size_t known_bytes(unsigned version) {
  const auto at_least = [&](int minor) {
    return version >= static_cast<unsigned>(version_code(2, minor, 0));
  };
  if (!at_least(14)) return offsetof(leeway_nccl_config, blocking);
  if (!at_least(17)) return offsetof(leeway_nccl_config, cga_cluster_size);
  if (!at_least(25)) return offsetof(leeway_nccl_config, traffic_class);
  if (!at_least(27)) return offsetof(leeway_nccl_config, comm_name);
  if (!at_least(28)) return offsetof(leeway_nccl_config, channels_per_net_peer);
  if (!at_least(30)) return offsetof(leeway_nccl_config, graph_usage_mode);
  return sizeof(leeway_nccl_config);
}

struct Rule {
  Member member;
  const char* name;
  bool (*allows)(int value);
};

bool is_switch(int value) {
  return value == 0 || value == 1;
}
bool is_positive(int value) {
  return value > 0;
}
bool is_not_negative(int value) {
  return value >= 0;
}

// Members that Leeway does not use are checked too, so that a program finds its mistakes.
constexpr Rule kRules[] = {
    {&leeway_nccl_config::blocking, "blocking", &is_switch},
    {&leeway_nccl_config::cga_cluster_size, "cgaClusterSize", &is_not_negative},
    {&leeway_nccl_config::min_ctas, "minCTAs", &is_positive},
    {&leeway_nccl_config::max_ctas, "maxCTAs", &is_positive},
    {&leeway_nccl_config::split_share, "splitShare", &is_switch},
    {&leeway_nccl_config::collnet_enable, "collnetEnable", &is_switch},
    {&leeway_nccl_config::shrink_share, "shrinkShare", &is_switch},
    {&leeway_nccl_config::nvls_ctas, "nvlsCTAs", &is_positive},
    {&leeway_nccl_config::channels_per_net_peer, "nChannelsPerNetPeer", &is_positive},
    {&leeway_nccl_config::nvlink_centric_sched, "nvlinkCentricSched", &is_switch},
};

Status check(const leeway_nccl_config& config) {
  for (const Rule& rule : kRules) {
    const int value = config.*rule.member;
    if (value == INT_MIN || rule.allows(value)) continue;
    return Status::error(StatusCode::kInvalidArgument, "Invalid config %s attribute value %d",
                         rule.name, value);
  }
  const bool both = config.min_ctas != INT_MIN && config.max_ctas != INT_MIN;
  if (both && config.min_ctas > config.max_ctas) {
    return Status::error(StatusCode::kInvalidArgument,
                         "Invalid config min/max channels attribute value %d/%d", config.min_ctas,
                         config.max_ctas);
  }
  return Status();
}

}  // namespace

Result<Config> read_config(const leeway_nccl_config* asked, const Config& inherited) {
  if (asked == nullptr) return inherited;
  // The members before `blocking` exist in every version since 2.14. Later members exist only
  // within `size` bytes.
  constexpr std::size_t kHeadBytes = offsetof(leeway_nccl_config, blocking);
  leeway_nccl_config config = left_alone();
  if (asked->magic != kConfigMagic || asked->size < kHeadBytes) {
    return Status::error(StatusCode::kInvalidArgument,
                         "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  }
  const std::size_t bytes = std::min({asked->size, known_bytes(asked->version), sizeof config});
  std::memcpy(&config, asked, bytes);
  if (Status status = check(config); !status.ok()) return status;
  Config out = inherited;
  if (config.blocking != INT_MIN) out.blocking = config.blocking == 1;
  if (config.comm_name != nullptr) out.name = config.comm_name;
  return out;
}

}  // namespace leeway::nccl
