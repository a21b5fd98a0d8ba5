#!/usr/bin/env bash
# Pairs of ranks that meet over networks, each broken in its own way, all at the same time: create() finds a way, or ends within
# 12 s (on a quiet machine) with a text that names rank, address, direction and remedy.
#   broken_networks_test.sh LEEWAY_COMMAND INTEGRATION_WORKER
# Exit status 77 where the machine permits no namespaces or has no nft. SHOW=1 prints what each rank said.
source "$(dirname "${BASH_SOURCE[0]}")/nat_lab.sh"
worker=$2
: >"$scratch/out" >"$scratch/err"  # of fail()
unshare -m true 2>/dev/null || { echo "skipped: no mount namespaces"; exit 77; }

# Of ranks that have to fail: far more than they may take, so that a path that is waited for all the time is seen.
patience=120000
export LEEWAY_TRANSPORT=udp LEEWAY_WORLD_SIZE=2 LEEWAY_JOIN_TIMEOUT_MS=$patience

drop() { in_space "$1" nft "table inet broken { chain in { type filter hook input priority 0; $2 drop; }; }"; }
# elsewhere SPACE ADDRESS: an interface that leads nowhere, and the default route by it
elsewhere() {
  in_space "$1" ip link add nowhere type veth peer name hole
  in_space "$1" ip address add "$2/24" dev nowhere
  in_space "$1" ip link set hole up
  in_space "$1" ip link set nowhere up
  in_space "$1" ip route add default dev nowhere
}
six() { in_space "$1" ip address add "$2/64" dev out nodad; }

# pair CASE: two hosts on the bridge, CASE0 and CASE1, at 10.50.K.1 and 10.50.K.2
pairs=0
pair() {
  pairs=$((pairs + 1))
  export LEEWAY_RENDEZVOUS=10.50.$pairs.1:29400
  for side in 0 1; do
    new_space "$1$side"
    plug "$1$side" "10.50.$pairs.$((side + 1))"
  done
}
# rank CASE NUMBER SPACE WORD...: a rank that joins, behind the variables and the command words that are given
ranks=()
rank() {
  local case=$1 number=$2 space=$3
  shift 3
  ip netns exec "$name-$space" env LEEWAY_RANK="$number" "$@" "$worker" join_only >"$scratch/$case.$number" 2>"$scratch/$case.$number.log" &
  ranks+=($!)
}
both() {
  rank "$1" 0 "${1}0"
  rank "$1" 1 "${1}1"
}
# names FILE LINE...: command words for a rank that finds these lines in /etc/hosts
names() {
  printf '%s\n' "127.0.0.1 localhost" "${@:2}" >"$scratch/$1"
  with_names=(unshare -m sh -c "mount --bind '$scratch/$1' /etc/hosts && exec \"\$@\"" sh)
}

pair oneway
drop oneway0 "meta l4proto udp"
both oneway

pair bothways
drop bothways0 "meta l4proto udp"
drop bothways1 "meta l4proto udp"
both bothways

# Sealed ranks: two of them have nobody who could relay.
(umask 077 && "$leeway" keygen >"$scratch/other.key")
sealed=LEEWAY_SECRET_FILE=$scratch/cluster.key
pair sealway
drop sealway0 "meta l4proto udp"
rank sealway 0 sealway0 "$sealed"
rank sealway 1 sealway1 "$sealed"

# A name of both families, of which IPv6 is dead between the hosts.
pair dead6
names both "fd50::1 both" "10.50.$pairs.1 both"
for side in 0 1; do
  six dead6$side fd50::$((side + 1))
  drop dead6$side "iifname out meta nfproto ipv6 meta l4proto {tcp, udp}"
  rank dead6 $side dead6$side LEEWAY_RENDEZVOUS=both:29400 "${with_names[@]}"
done

# The same name where both live, and hosts with nothing but IPv6.
pair dual
for side in 0 1; do six dual$side fd51::$((side + 1)); done
names dual "fd51::1 both" "10.50.$pairs.1 both"
for side in 0 1; do rank dual $side dual$side LEEWAY_RENDEZVOUS=both:29400 "${with_names[@]}"; done
pair only6
names only6 "fd52::1 six"
for side in 0 1; do
  in_space only6$side ip address flush dev out
  six only6$side fd52::$((side + 1))
  rank only6 $side only6$side LEEWAY_RENDEZVOUS=six:29400 "${with_names[@]}"
done

# One rank is told to use the other family.
pair family
six family1 fd53::2
rank family 0 family0
rank family 1 family1 LEEWAY_BIND=fd53::2

# Rank 0's own name is 127.0.1.1 to itself, and its default route leads elsewhere.
pair ownname
elsewhere ownname0 10.60.1.1
names own "127.0.1.1 zero"
with_own_name=("${with_names[@]}")
rank ownname 0 ownname0 LEEWAY_RENDEZVOUS=zero:29400 "${with_own_name[@]}"
names other "10.50.$pairs.1 zero"
rank ownname 1 ownname1 LEEWAY_RENDEZVOUS=zero:29400 "${with_names[@]}"

# The same, and rank 1 is on rank 0's host: it comes by loopback.
pair onhost
elsewhere onhost0 10.60.5.1
export LEEWAY_WORLD_SIZE=3
for side in 0 1; do rank onhost $side onhost0 LEEWAY_RENDEZVOUS=zero:29400 "${with_own_name[@]}"; done
names other3 "10.50.$pairs.1 zero"
rank onhost 2 onhost1 LEEWAY_RENDEZVOUS=zero:29400 "${with_names[@]}"

# Three ranks, of which two have no path.
pair three
new_space three2
plug three2 10.50.$pairs.3
drop three0 "meta l4proto udp ip saddr 10.50.$pairs.2"
for side in 0 1 2; do rank three $side three$side; done
export LEEWAY_WORLD_SIZE=2

# Rank 0 is told to use an interface that the other has a way to, but does not reach; and one that it has no way to.
pair nic
elsewhere nic0 10.60.2.1
elsewhere nic1 10.60.3.1
rank nic 0 nic0 LEEWAY_BIND=10.60.2.1
rank nic 1 nic1
pair noroute
elsewhere noroute0 10.60.4.1
rank noroute 0 noroute0 LEEWAY_BIND=10.60.4.1
rank noroute 1 noroute1

# The network drops, unsaid, what is longer.
for bytes in 1000 500; do
  pair mtu$bytes
  for side in 0 1; do drop mtu$bytes$side "meta l4proto udp meta length > $bytes"; done
  both mtu$bytes
done

# Translators, one that keeps ports and one that takes another for each peer, without and with a secret.
masquerade nat-b fully-random
last=30
for case in nat:a symmetric:b sealnat:a sealsymm:b; do
  last=$((last + 1))
  new_space "${case%:*}0"
  plug "${case%:*}0" 203.0.113.$last
  export LEEWAY_RENDEZVOUS=203.0.113.$last:29400
  secret=(env)
  case $case in seal*) secret=("$sealed") ;; esac
  rank "${case%:*}" 0 "${case%:*}0" "${secret[@]}"
  rank "${case%:*}" 1 "${case#*:}" "${secret[@]}"
done

pair descriptors
rank descriptors 0 descriptors0 LEEWAY_JOIN_TIMEOUT_MS=13000
rank descriptors 1 descriptors1 prlimit --nofile=7

pair secret
rank secret 0 secret0 "$sealed" LEEWAY_JOIN_TIMEOUT_MS=13000
rank secret 1 secret1 "LEEWAY_SECRET_FILE=$scratch/other.key" LEEWAY_JOIN_TIMEOUT_MS=8000

pair absent
rank absent 0 absent0 LEEWAY_JOIN_TIMEOUT_MS=13000
pair absentzero
rank absentzero 1 absentzero1 LEEWAY_JOIN_TIMEOUT_MS=13000

pair late
rank late 0 late0
sleep 13
rank late 1 late1

for pid in "${ranks[@]}"; do
  wait "$pid" || true  # what it printed is judged
done
if [ -n "${SHOW:-}" ]; then
  for log in "$scratch"/*.log; do
    printf '== %s\n%s\n' "$(basename "$log" .log)" "$(grep -v 'dropped: it does not know' "$log"; cat "${log%.log}")"
  done
fi

# joins CASE
joins() {
  local side said
  for said in "$scratch/$1".?; do
    side=${said##*.}
    grep -q '"size":' "$said" && took "$1" $side 12000 || fail "$1: rank $side: $(cat "$scratch/$1.$side" "$scratch/$1.$side.log")"
  done
}
# took CASE NUMBER MS: create() and a barrier did not take longer, on a quiet machine; neighbours may triple it
took() {
  [ "$(sed -E 's/.*"elapsed_ms":([0-9]+).*/\1/' "$scratch/$1.$2")" -le $((3 * $3)) ]
}
# fails CASE NUMBER TEXT...: its error has these texts, and what it waited for
fails() {
  local said=$scratch/$1.$2 text
  for text in '"error"' "${@:3}"; do
    grep -qF -- "$text" "$said" || fail "$1: rank $2 does not say \"$text\": $(cat "$said" "$said.log")"
  done
}
# warns CASE NUMBER TEXT...: a line of its log has these texts
warns() {
  local text lines
  lines=$(grep "warning: " "$scratch/$1.$2.log") || fail "$1: rank $2 is silent"
  for text in "${@:3}"; do
    lines=$(grep -F -- "$text" <<<"$lines") || fail "$1: rank $2 does not say \"$text\": $(cat "$scratch/$1.$2.log")"
  done
}
# soon CASE NUMBER TEXT...: the same, within 12 s
soon() {
  fails "$@"
  took "$1" "$2" 12000 || fail "$1: rank $2 took too long: $(cat "$scratch/$1.$2")"
}

soon oneway 0 "to rank 1" "no datagram came from there (10.50.1.2:" "from here (10.50.1.1:" "from rank 1 to rank 0, or both" LEEWAY_BIND
soon oneway 1 "to rank 0" "from here (10.50.1.2:" "none arrived there (10.50.1.1:" "one way, from rank 1 to rank 0" firewalls
for side in 0 1; do
  soon bothways $side "to rank $((1 - side))" "no datagram came from there (10.50.2.$((2 - side)):" "or both ways" firewalls
done
soon sealway 0 "to rank 1" "no datagram came from there (10.50.3.2:" "from rank 1 to rank 0, or both" LEEWAY_BIND
soon sealway 1 "to rank 0" "none arrived there (10.50.3.1:" "one way, from rank 1 to rank 0" firewalls
joins dead6
took dead6 1 4000 || fail "a dead family was waited for: $(cat "$scratch/dead6.1")"
joins dual
joins only6
for side in 0 1; do soon family $side "rank 1 has data address fd53::2, rank 0 has 10.50." "LEEWAY_BIND"; done
joins ownname
joins onhost
soon three 0 "to rank 1 failed" "no datagram came"
soon three 1 "to rank 0 failed" "one way, from rank 1 to rank 0"
soon three 2 "rank 2: "
soon nic 0 "from here (10.60.2.1:" "LEEWAY_BIND"
soon nic 1 "none arrived there (10.60.2.1:" "one way, from rank 1 to rank 0" "LEEWAY_BIND on rank 0"
soon noroute 1 "arrived there (10.60.4.1:" "Network is unreachable (errno 101)" "LEEWAY_BIND on rank 0"
joins mtu1000
grep -q "no datagram of 548 bytes reaches rank" "$scratch"/mtu500.? || fail "MTU 500: $(cat "$scratch"/mtu500.?)"
for side in 0 1; do soon mtu500 $side "rank $((1 - side))"; done
soon nat 0 "nothing came from there (10.1.0.2:" "datagrams from 203.0.113.10:" "rank 1 is behind a NAT" "leeway keygen"
soon symmetric 0 "nothing came from there (10.2.0.2:" "datagrams from 203.0.113.20:" "rank 1 is behind a NAT" "leeway keygen"
soon nat 1 "to rank 0" "203.0.113.31"
joins sealnat
joins sealsymm
soon descriptors 1 "rank 1" "Too many open files (ulimit -n)"
fails descriptors 0 "missing rank 1"
fails secret 0 "missing rank 1" "10.50." secret
fails secret 1 "LEEWAY_SECRET_FILE" "10.50."
# Ranks that may still come are waited for; after ten seconds the log says so.
fails absent 0 "10.50." "missing rank 1" "running" "port"
warns absent 0 "10.50." "waits for rank 1"
fails absentzero 1 "rank 0" "10.50." "running" "port"
warns absentzero 1 "rank 1" "10.50." "is rank 0 running"
joins late
warns late 0 "waits for rank 1"
echo "all right"
