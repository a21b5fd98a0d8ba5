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

# Started on their own, as on two hosts, ranks say what is wrong with their own files.
cp "$LEEWAY_SECRET_FILE" "$scratch/open.key"
chmod 644 "$scratch/open.key"
run env LEEWAY_RANK=1 LEEWAY_WORLD_SIZE=2 LEEWAY_RENDEZVOUS=127.0.0.1:9 LEEWAY_SECRET_FILE="$scratch/open.key" "$leeway" "${perf[@]}"
[ "$code" = 2 ] || fail "a rank whose secret others can read ends with $code"
grep -q "open.key: others than its owner.*chmod 600" "$scratch/err" || fail "rank 1 does not say that others can read its secret"

# A secret that is misspelt makes no open group.
run env -u LEEWAY_SECRET_FILE LEEWAY_SECRETFILE="$scratch/cluster.key" "$leeway" "${perf[@]}" --ranks 2
[ "$code" = 2 ] || fail "a misspelt secret ends with $code"
grep -q "warning: environment: LEEWAY_SECRETFILE .* is LEEWAY_SECRET_FILE meant" "$scratch/err" || fail "a misspelt secret is not said"
