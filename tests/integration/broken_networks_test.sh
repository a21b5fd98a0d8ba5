#!/usr/bin/env bash
# Ranks that meet over networks that are broken in one way each, all at the same time: create() ends within 12 s with a text
# that names rank, address, direction and remedy, or it finds a way.
#   broken_networks_test.sh LEEWAY_COMMAND
# Exit status 77 where the machine permits no namespaces or has no nft. SHOW=1 prints what each rank said.
source "$(dirname "${BASH_SOURCE[0]}")/nat_lab.sh"
unshare -m true 2>/dev/null || { echo "skipped: no mount namespaces"; exit 77; }

place() { in_space "$1" ip address add "$2" dev out nodad; }
rules() { in_space "$1" nft "table inet broken { $2; }"; }
dropped_in() { rules "$1" "chain in { type filter hook input priority 0; $2 drop; }"; }
# elsewhere SPACE ADDRESS: an interface that leads nowhere, and the default route by it
elsewhere() {
  in_space "$1" ip link add nowhere type veth peer name hole
  in_space "$1" ip address add "$2/24" dev nowhere
  in_space "$1" ip link set hole up
  in_space "$1" ip link set nowhere up
  in_space "$1" ip route add default dev nowhere
}

# pair CASE: two hosts on the bridge, CASE0 and CASE1, at 10.50.K.1 and 10.50.K.2
kinds=0
pair() {
  kinds=$((kinds + 1))
  network=10.50.$kinds
  for side in 0 1; do
    new_space "$1$side"
    plug "$1$side" "$network.$((side + 1))"
  done
}
# rank CASE NUMBER SPACE WORD...: starts a rank of two, with the variables and the prefix that the words are
rank() {
  local case=$1 number=$2 space=$3
  shift 3
  (
    begin=$(date +%s%N)
    code=0
    env LEEWAY_RANK="$number" LEEWAY_WORLD_SIZE=2 LEEWAY_RENDEZVOUS="$network.1:29400" LEEWAY_TRANSPORT=udp \
      LEEWAY_JOIN_TIMEOUT_MS=30000 ip netns exec "$name-$space" env "$@" "$leeway" perf --transport udp --warmup 0 --iters 1 \
      --min 4K --max 4K >"$scratch/$case.$number.out" 2>"$scratch/$case.$number.err" || code=$?
    echo "$code $((($(date +%s%N) - begin) / 1000000))" >"$scratch/$case.$number.end"
  ) &
  ranks+=($!)
}
ranks=()
# ranks CASE WORD...: both, each on its host
both() {
  rank "$1" 0 "${1}0" "${@:2}"
  rank "$1" 1 "${1}1" "${@:2}"
}

pair oneway
dropped_in oneway0 "meta l4proto udp"
both oneway

pair bothways
dropped_in bothways0 "meta l4proto udp"
dropped_in bothways1 "meta l4proto udp"
both bothways

# A name with addresses of both families, of which IPv6 is dead between the hosts.
pair family
for side in 0 1; do
  place "family$side" "fd50::$((side + 1))/64"
  dropped_in "family$side" "iifname out meta nfproto ipv6 meta l4proto {tcp, udp}"
done
printf '127.0.0.1 localhost\nfd50::1 both\n%s.1 both\n' "$network" >"$scratch/both.hosts"
with_hosts() { echo "unshare -m sh -c 'mount --bind $1 /etc/hosts; exec \"\$@\"' sh"; }
rank_with_hosts() {
  local hosts=$1 case=$2 number=$3 space=$4
  shift 4
  rank "$case" "$number" "$space" "$@" unshare -m sh -c "mount --bind $hosts /etc/hosts; exec \"\$@\"" sh
}
for side in 0 1; do
  rank_with_hosts "$scratch/both.hosts" family $side family$side LEEWAY_RENDEZVOUS=both:29400
done

# Each rank binds to another family.
pair mixed
place mixed1 "fd51::2/64"
rank mixed 0 mixed0
rank mixed 1 mixed1 LEEWAY_BIND=fd51::2

# Only IPv6, by name.
pair six
for side in 0 1; do
  in_space "six$side" ip address flush dev out
  place "six$side" "fd52::$((side + 1))/64"
done
printf '::1 localhost\nfd52::1 six\n' >"$scratch/six.hosts"
for side in 0 1; do
  rank_with_hosts "$scratch/six.hosts" six $side six$side LEEWAY_RENDEZVOUS=six:29400
done

# Rank 0's own name is 127.0.1.1 to itself, and its default route leads elsewhere.
pair ownname
elsewhere ownname0 10.60.1.1
printf '127.0.0.1 localhost\n127.0.1.1 zero\n' >"$scratch/zero.hosts"
printf '127.0.0.1 localhost\n%s.1 zero\n' "$network" >"$scratch/other.hosts"
rank_with_hosts "$scratch/zero.hosts" ownname 0 ownname0 LEEWAY_RENDEZVOUS=zero:29400
rank_with_hosts "$scratch/other.hosts" ownname 1 ownname1 LEEWAY_RENDEZVOUS=zero:29400

# Rank 0 binds to an interface that the other cannot reach, and has a route for: its answers go nowhere.
pair nic
elsewhere nic0 10.60.2.1
elsewhere nic1 10.60.3.1
rank nic 0 nic0 LEEWAY_BIND=10.60.2.1
rank nic 1 nic1

# The same without a route.
pair noroute
elsewhere noroute0 10.60.4.1
rank noroute 0 noroute0 LEEWAY_BIND=10.60.4.1
rank noroute 1 noroute1

# The network drops, unsaid, what is longer than 1,000 bytes; and longer than 500.
for bytes in 1000 500; do
  pair mtu$bytes
  for side in 0 1; do dropped_in mtu$bytes$side "meta l4proto udp meta length > $bytes"; done
  both mtu$bytes
done

# Translators, without and with a secret: one that keeps ports, one that takes another for each peer.
sealed=LEEWAY_SECRET_FILE=$scratch/cluster.key
masquerade nat-b fully-random
network=203.0.113
new_space plain && plug plain 203.0.113.3
new_space plain2 && plug plain2 203.0.113.4
new_space neighbour2 && plug neighbour2 203.0.113.5
network=203.0.113
at() { echo "LEEWAY_RENDEZVOUS=203.0.113.$1:29400"; }
rank nat 0 plain "$(at 3)"
rank nat 1 a "$(at 3)"
rank symmetric 0 plain2 "$(at 4)"
rank symmetric 1 b "$(at 4)"
rank sealednat 0 neighbour "$(at 2)" "$sealed"
rank sealednat 1 a "$(at 2)" "$sealed"
rank sealedsymmetric 0 neighbour2 "$(at 5)" "$sealed"
rank sealedsymmetric 1 b "$(at 5)" "$sealed"

pair descriptors
rank descriptors 0 descriptors0
rank descriptors 1 descriptors1 prlimit --nofile=7

pair secret
(umask 077 && "$leeway" keygen >"$scratch/other.key")
rank secret 0 secret0 "$sealed" LEEWAY_JOIN_TIMEOUT_MS=8000
rank secret 1 secret1 "LEEWAY_SECRET_FILE=$scratch/other.key" LEEWAY_JOIN_TIMEOUT_MS=8000

pair late
rank late 0 late0
(sleep 12 && true) &
sleeper=$!

pair absent
rank absent 0 absent0 LEEWAY_JOIN_TIMEOUT_MS=14000

pair absentzero
rank absentzero 1 absentzero1 LEEWAY_JOIN_TIMEOUT_MS=14000

network=10.50.$((kinds - 2))
wait $sleeper
rank late 1 late1
for pid in "${ranks[@]}"; do wait "$pid"; done
for end in "$scratch"/*.end; do
  at=$(basename "$end" .end)
  echo "== $at: $(cat "$end")"
  cat "$scratch/$at.err" | cut -c1-900
done
