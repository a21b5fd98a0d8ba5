// Checks which users may read a file of secrets.
#pragma once

namespace leeway::keys {

// Returns whether only the owner may write `file`, and only root, its owner, this process and its
// groups may read it. Groups are needed for Kubernetes' fsGroup, and this user's own entry in an
// access control list for systemd's credentials.
bool kept_from_others(int file);

}  // namespace leeway::keys
