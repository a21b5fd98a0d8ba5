// Who may read a file of secrets.
#pragma once

namespace leeway::keys {

// True if nobody may write `file` but its owner, and nobody may read it but its owner, root and
// this process: by a group that it is in, as Kubernetes' fsGroup gives it, or by its own entry of
// an access control list, as systemd's credentials have it.
bool kept_from_others(int file);

}  // namespace leeway::keys
