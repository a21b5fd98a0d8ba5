#!/usr/bin/env bash
# `leeway doctor --paths` where UDP is blocked: every rank ends within 10 s of their meeting, and rank 0 shows which pairs are
# broken, which way, over which family, and who could relay.
#   doctor_paths_test.sh LEEWAY_COMMAND
# Exit status 77 where the machine permits no namespaces or has no nft.
source "$(dirname "${BASH_SOURCE[0]}")/nat_lab.sh"
new_space third
plug third 203.0.113.3

# examine NAME: three ranks, with the variables that are set
examine() {
  pids=()
  begin=$(date +%s%N)
  local rank=0 space
  for space in public neighbour third; do
    LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=3 LEEWAY_RENDEZVOUS=203.0.113.1:29400 LEEWAY_PORT=29401 \
      timeout 60 ip netns exec "$name-$space" "$leeway" doctor --paths >"$scratch/out.$rank" 2>"$scratch/err.$rank" &
    pids+=($!)
    rank=$((rank + 1))
  done
  codes=
  local pid
  for pid in "${pids[@]}"; do
    wait "$pid" && codes+=0 || codes+=1
  done
  took=$((($(date +%s%N) - begin) / 1000000))
  echo "$1: $took ms, exit codes $codes"
  cp "$scratch/out.0" "$scratch/out"
  cp "$scratch/err.0" "$scratch/err"
}
# says TEXT: rank 0's table has it
says() { grep -qF "$1" "$scratch/err" || fail "not there: $1"; }
block() { in_space "$1" nft "flush ruleset; table inet blocked { chain in { type filter hook input priority 0; $2 drop; }; }"; }

examine "nothing is broken"
[ "$codes" = 000 ] || fail "a whole network is called broken"

block neighbour "meta l4proto udp"
block public "ip saddr 203.0.113.2 meta l4proto udp"
block third "ip saddr 203.0.113.2 meta l4proto udp"
examine "UDP from and to rank 1 is blocked"
[ "$codes" = 111 ] || fail "exit codes $codes"
within 10000
says "UDP between rank 0 and rank 1: nothing passes, either way (IPv4); no rank reaches both"
says "UDP between rank 1 and rank 2: nothing passes, either way (IPv4); no rank reaches both"
if grep -q "between rank 0 and rank 2" "$scratch/err"; then fail "a path that works is called broken"; fi

in_space public nft flush ruleset
in_space third nft flush ruleset
block neighbour "ip saddr 203.0.113.3 meta l4proto udp"
examine "UDP from rank 2 to rank 1 is blocked, and nothing relays without a secret"
[ "$codes" = 111 ] || fail "exit codes $codes"
within 10000
says "UDP between rank 1 and rank 2: nothing passes from rank 2 to rank 1 (IPv4); rank 0 reaches both, and relays where the group has a secret"

LEEWAY_SECRET_FILE=$scratch/cluster.key examine "the same with a secret"
[ "$codes" = 000 ] || fail "nobody relays"
says "rank 0 reaches both, and relays where the group has a secret"
echo "all right"
