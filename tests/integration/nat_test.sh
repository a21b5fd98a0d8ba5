#!/usr/bin/env bash
# Sealed ranks behind address translators (nftables masquerade in network namespaces): they join directly, and translators that
# take other ports or addresses, or forget, cost no more than a moment.
#   nat_test.sh LEEWAY_COMMAND
# Exit status 77 where the machine permits no namespaces or has no nft.
source "$(dirname "${BASH_SOURCE[0]}")/nat_lab.sh"

few=(--min 4K --max 4K --iters 3)
start public neighbour -- "${few[@]}"
finish "two ranks without a translator"
alone=$took
start public a -- "${few[@]}"
finish "one rank behind a translator"
within $((alone + 2000))
start public a b -- "${few[@]}"
finish "two ranks behind translators, and one that both reach"
within $((alone + 2000))

long=(--min 256K --max 256K --iters 1500)
start public a b -- "${long[@]}"
finish "1500 calls in peace"
calm=$took

start public a b -- "${long[@]}"
sleep 1.5
in_space nat-a ip address add 203.0.113.11/24 dev out
in_space nat-a ip address delete 203.0.113.10/24 dev out
in_space nat-a ip address show dev out | grep -q 203.0.113.11 || in_space nat-a ip address add 203.0.113.11/24 dev out
finish "the same, and a translator has another address meanwhile"
within $((2 * calm + 2500))

for space in nat-a nat-b; do
  in_space "$space" sysctl -qw net.netfilter.nf_conntrack_udp_timeout=2 net.netfilter.nf_conntrack_udp_timeout_stream=2
done
start public a b -- "${long[@]}"
sleep 1.5
signal_all STOP
sleep 5
signal_all CONT
finish "the same, and translators forget everybody while ranks stand still for 5 s"
within $((2 * calm + 5000 + 2500))

masquerade nat-a fully-random
start public a -- "${long[@]}"
sleep 1
in_space nat-a ip link set out down
in_space nat-a ip link set out up
finish "two ranks, and a translator takes other ports meanwhile"
within $((2 * calm + 2500))
echo "all right"
