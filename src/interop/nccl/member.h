// The options of one rank of a group that meets by a unique id.
#pragma once

#include "interop/nccl/settings.h"
#include "interop/nccl/unique_id.h"
#include "leeway/options.h"

namespace leeway::nccl {

// Returns the options that the environment gives, for this rank. Ranks have kMeetingTime to meet,
// unless LEEWAY_JOIN_TIMEOUT_MS is set.
Result<Options> member_options(const Settings& settings, int ranks, int rank);

// Returns true if this rank's datagrams are sealed by the operator's secret file or certificates.
bool has_credentials(const Options& options);

// Makes the secret of the id the secret of the group, so that members prove themselves by it and
// datagrams are sealed. Does nothing if the id has no secret, if `seal` of the settings is false,
// or if the options have a secret file or certificates.
void seal_by(const UniqueId& id, const Settings& settings, Options& options);

}  // namespace leeway::nccl
