// The options of one rank of a group that meets by a unique id.
#pragma once

#include "interop/nccl/settings.h"
#include "interop/nccl/unique_id.h"
#include "leeway/options.h"

namespace leeway::nccl {

// What the environment says. Ranks have kMeetingTime to meet, unless it says that too.
Result<Options> member_options(const Settings& settings, int ranks, int rank);

// Whether the operator's secret file or certificates seal what this rank sends.
bool has_credentials(const Options& options);

// The id's secret proves who takes part, and datagrams are sealed. Nothing happens where the id has
// no secret, the settings say so, or the environment brings a secret file or certificates.
void seal_by(const UniqueId& id, const Settings& settings, Options& options);

}  // namespace leeway::nccl
