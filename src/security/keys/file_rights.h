// Checks which users may read a file of secrets.
#pragma once

namespace leeway::keys {

// Returns whether only the owner may write `file`, and only its owner, root and this process may
// read it. This process may have its right to read from a group that it is in (as with Kubernetes'
// fsGroup), or from its own entry of an access control list (as with systemd's credentials).
bool kept_from_others(int file);

}  // namespace leeway::keys
