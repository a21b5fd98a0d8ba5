#include "interop/nccl/member.h"

#include "interop/nccl/listeners.h"

namespace leeway::nccl {

bool has_credentials(const Options& options) {
  return !options.secret_file.empty() || !options.tls_ca.empty() ||
         !options.tls_certificate.empty() || !options.tls_key.empty();
}

Result<Options> member_options(const Settings& settings, int ranks, int rank) {
  auto options = Options::from_environment(Options::Membership::from_caller);
  if (!options.ok()) return options.status();
  options->rank = rank;
  options->world_size = ranks;
  if (!settings.join_timeout_given) options->join_timeout = kMeetingTime;
  return options;
}

void seal_by(const UniqueId& id, const Settings& settings, Options& options) {
  if (!id.has_secret() || !settings.seal || has_credentials(options)) return;
  options.secret = id.secret_text();
  options.secret_for_meeting_only = true;  // otherwise each id would have a socket and a thread
}

}  // namespace leeway::nccl
