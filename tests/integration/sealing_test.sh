#!/usr/bin/env bash
# Real processes that share a secret: `leeway perf` over UDP, sealed, checks its own results.
#   sealing_test.sh LEEWAY_COMMAND
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"

(umask 077 && "$leeway" keygen >"$scratch/cluster.key")
export LEEWAY_SECRET_FILE=$scratch/cluster.key
perf=(perf --transport udp --min 256K --max 256K --iters 5 --warmup 1)
for ranks in 2 4; do
  run "$leeway" "${perf[@]}" --ranks "$ranks"
  [ "$code" = 0 ] || fail "$ranks sealed ranks end with $code"
  grep -q '^ *262144 ' "$scratch/out" || fail "$ranks sealed ranks print no row"
done
run "$leeway" "${perf[@]}" --ranks 2 --loss 0.05
[ "$code" = 0 ] || fail "sealed ranks with loss end with $code"

run "$leeway" "${perf[@]}" --ranks 2 --multicast
[ "$code" != 0 ] || fail "multicast goes out although it is not sealed"
grep -q "multicast is not sealed" "$scratch/err" "$scratch/out" || fail "multicast is refused without the reason"
