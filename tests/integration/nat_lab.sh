# Hosts in network namespaces: two on a public network (public, neighbour), and two behind translators of their own (a, b).
# Sourced by the tests; ends with status 77 where the machine permits no namespaces or has no nft.
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"
name=leeway-nat-$$

clean_up() {
  local space
  for space in $(ip netns list | awk -v name="$name-" 'index($1, name) == 1 {print $1}'); do
    ip netns pids "$space" | xargs -r kill -KILL 2>/dev/null || true
    ip netns delete "$space"
  done
}
trap 'clean_up; rm -rf "$scratch"' EXIT

in_space() { ip netns exec "$name-$1" "${@:2}"; }
new_space() {
  ip netns add "$name-$1" && in_space "$1" ip link set lo up
}
command -v nft >/dev/null && new_space net 2>/dev/null || { echo "skipped: no namespaces or no nft"; exit 77; }
in_space net ip link add bridge type bridge
in_space net ip link set bridge up

# plug SPACE ADDRESS: onto the public network
plug() {
  in_space net ip link add "to-$1" type veth peer name out netns "$name-$1"
  in_space net ip link set "to-$1" master bridge up
  in_space "$1" ip address add "$2/24" dev out
  in_space "$1" ip link set out up
}

# translate SPACE OUTSIDE INSIDE HOST MASQUERADE: HOST at INSIDE.2 is seen as OUTSIDE
translate() {
  new_space "$1"
  new_space "$4"
  plug "$1" "$2"
  in_space "$1" sysctl -qw net.ipv4.ip_forward=1
  in_space "$1" ip link add in type veth peer name eth netns "$name-$4"
  in_space "$1" ip address add "$3.1/24" dev in
  in_space "$1" ip link set in up
  in_space "$4" ip address add "$3.2/24" dev eth
  in_space "$4" ip link set eth up
  in_space "$4" ip route add default via "$3.1"
  masquerade "$1" "${5:-}"
}
# What nobody inside asked for is dropped, as by a router at home. Were it refused instead, the kernel would keep its port, and
# give another one to the rank that speaks to the same peer next.
masquerade() {
  in_space "$1" nft "flush ruleset; table ip nat { chain out { type nat hook postrouting priority 100; oifname out masquerade $2; }; };
    table ip filter {
      chain forward { type filter hook forward priority 0; iifname out ct state new drop; };
      chain input { type filter hook input priority 0; iifname out drop; };
    }" ||
    { echo "skipped: no masquerade"; exit 77; }
}

new_space public
plug public 203.0.113.1
new_space neighbour
plug neighbour 203.0.113.2
translate nat-a 203.0.113.10 10.1.0 a
translate nat-b 203.0.113.20 10.2.0 b
(umask 077 && "$leeway" keygen >"$scratch/cluster.key")

# start SPACE... -- OPTIONS: a rank in each; the first one is rank 0, whom all reach
start() {
  spaces=()
  while [ "$1" != -- ]; do spaces+=("$1"); shift; done
  shift
  pids=()
  begin=$(date +%s%N)
  local rank=0 space
  for space in "${spaces[@]}"; do
    LEEWAY_SECRET_FILE=$scratch/cluster.key LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=${#spaces[@]} LEEWAY_RENDEZVOUS=203.0.113.1:29400 \
      LEEWAY_TRANSPORT=udp timeout 60 ip netns exec "$name-$space" "$leeway" perf --transport udp --warmup 0 --factor 2 "$@" \
      >"$scratch/out.$rank" 2>"$scratch/err.$rank" &
    pids+=($!)
    rank=$((rank + 1))
  done
}
finish() {
  local pid
  for pid in "${pids[@]}"; do
    wait "$pid" || fail "$1: $(cat "$scratch"/err.* "$scratch/out.0")"
  done
  took=$((($(date +%s%N) - begin) / 1000000))
  echo "$1: $took ms"
}
# within MS: what the last run was allowed on a quiet machine. Neighbours on a shared one may triple it; a run that waited for a
# time-out takes longer than that.
within() {
  echo "  quiet machines are allowed $1 ms"
  [ "$took" -le $((3 * $1)) ] || fail "took $took ms, more than three times $1"
}
signal_all() {
  local space
  for space in "${spaces[@]}"; do ip netns pids "$name-$space" | xargs -r kill "-$1"; done
}
