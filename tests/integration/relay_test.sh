#!/usr/bin/env bash
# Sealed ranks behind translators that take another port for each peer (masquerade fully-random): the two have no path to each
# other, and go through a rank that both reach.
#   relay_test.sh LEEWAY_COMMAND
# Exit status 77 where the machine permits no namespaces or has no nft.
source "$(dirname "${BASH_SOURCE[0]}")/nat_lab.sh"
export LEEWAY_LOG=info

# relayed RANK TEXT: the rank's log says so
relayed() { grep -q "no path of their own: through rank $2" "$scratch/err.$1"; }

few=(--min 4K --max 4K --iters 3)
start public neighbour -- "${few[@]}"
finish "two ranks without a translator"
alone=$took

masquerade nat-a fully-random
masquerade nat-b fully-random
start public a b -- "${few[@]}"
finish "two ranks behind symmetric translators, and one that both reach"
within $((alone + 3000))
if ! relayed 1 0 || ! relayed 2 0; then fail "nobody relays: $(cat "$scratch"/err.*)"; fi

start public a b -- --min 256K --max 256K --iters 300
finish "300 exact calls through a relay"

# A rate that the user names keeps to the relay's share, too: a quarter of 20 Mb/s, of which each of the two has a half. 1 MiB
# takes 2.6 s so. At the full rate most of it was refused, again and again, for ever.
LEEWAY_RATE=20000000 start public a b -- --min 1M --max 1M --iters 1 --check 0
finish "calls through a relay at a fixed rate"
within $((alone + 8000))
for rank in 1 2; do
  grep -q "warning: relay at 203.0.113.1:.* (rank 0) refused .* % of the last .* datagrams by share" "$scratch/err.$rank" ||
    fail "rank $rank does not name the relay: $(cat "$scratch/err.$rank")"
  if grep -q "lost on the way" "$scratch/err.$rank"; then fail "the line is blamed: $(cat "$scratch/err.$rank")"; fi
done

# Lossy calls go on when rank 0 dies, and so must the two others behind translators, through rank 1.
start public neighbour a b -- --min 64K --max 64K --iters 100000 --delivery best_effort
for _ in $(seq 100); do
  if relayed 2 0 && relayed 3 0; then break; fi
  sleep 0.1
done
relayed 2 0 || relayed 2 1 || fail "nobody relays: $(cat "$scratch"/err.*)"
sleep 1
first=$(sed -n 's/.*through rank \([01]\).*/\1/p' "$scratch/err.2" | tail -1)
space=${spaces[$first]}
ip netns pids "$name-$space" | xargs -r kill -KILL
for _ in $(seq 60); do
  if relayed 2 $((1 - first)) && relayed 3 $((1 - first)); then break; fi
  sleep 0.1
done
relayed 2 $((1 - first)) || fail "no other relay: $(cat "$scratch"/err.*)"
relayed 3 $((1 - first)) || fail "no other relay: $(cat "$scratch"/err.*)"
sleep 4  # a peer time-out
if grep -q "rank 3 is given up" "$scratch/err.2"; then fail "rank 3 was given up: $(cat "$scratch/err.2")"; fi
if grep -q "rank 2 is given up" "$scratch/err.3"; then fail "rank 2 was given up: $(cat "$scratch/err.3")"; fi
signal_all KILL
wait
echo "all right"
