# Functions for tests that install files in a new, minimal Debian. Nothing of this machine is in it but its kernel. Source it
# in a script of which the first argument is the folder of the files, and the second the folder to work in.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mirror=${LEEWAY_DEBIAN_MIRROR:-http://deb.debian.org/debian}

fail() { echo "$*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
step() { printf '%s: %s\n' "$(date +%T)" "$*"; }

# Skips the test where it cannot run. Otherwise goes on in a mount namespace of its own: what is mounted there goes when this
# process ends.
enter_namespace() {
  [ "$(id -u)" = 0 ] || skip "not root"
  command -v debootstrap >/dev/null || skip "no debootstrap"
  [ -n "${LEEWAY_FRESH_ROOT_INSIDE:-}" ] ||
    LEEWAY_FRESH_ROOT_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
}

# Makes a new Debian of suite $1 in $root.
make_root() {
  step "debootstrap $1"
  debootstrap --variant=minbase "$1" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    skip "no Debian $1 from $mirror: $(tail -1 "$work/debootstrap.log")"
  mount --bind /dev "$root/dev"
  mount -t proc proc "$root/proc"
}

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }

# Runs a command in the new Debian with its output in log $1.
logged_inside() {
  local log=$work/$1.log
  shift
  inside "$@" >"$log" 2>&1 || fail "$(tail -20 "$log")"
}

remove_root() {
  umount "$root/proc" "$root/dev"
  rm -rf --one-file-system "$root"
}
