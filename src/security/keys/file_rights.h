// Checks which users may read a file of secrets.
#pragma once

namespace leeway::keys {

// Returns whether only the owner may write `file`, and only its owner, root and this process may
// read it. This process may read by a group that it is in, as Kubernetes' fsGroup gives it, or by
// its own entry of an access control list, as systemd's credentials have it.
bool kept_from_others(int file);

}  // namespace leeway::keys
