# Sourced by tests that run the leeway command as a person does; $1 is the command.
set -euo pipefail
leeway=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "FAILED: $*" >&2
  cat "$scratch/out" "$scratch/err" >&2
  exit 1
}

# Runs a command; leaves its exit code in $code, its output in $scratch/out and $scratch/err.
run() {
  code=0
  "$@" >"$scratch/out" 2>"$scratch/err" || code=$?
}
