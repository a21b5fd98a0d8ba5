// Checks which users may read a file of secrets.
#pragma once

namespace leeway::keys {

// Returns whether only the owner may write `file`, and only root, its owner, and this process's
// user and groups may read it. Groups are needed for Kubernetes' fsGroup. The user's own entry in
// an access control list is needed for systemd's credentials.
bool kept_from_others(int file);

}  // namespace leeway::keys
