#!/usr/bin/env bash
# Runs tools/wan_lab's program ($1) as a person does, at rates that a busy machine carries, with the leeway command ($2) and
# small Python programs as ranks. Exit status 77 where the machine permits no namespaces or no TUN devices.
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"
lab=$1
command=$2
report=$scratch/lab.json

run "$lab" --ranks 2 --quiet -- true
[ $code != 77 ] || { echo "skipped: $(cat "$scratch/err")"; exit 77; }
[ $code = 0 ] || fail "an empty program: exit status $code"

# holds CONDITION: in Python, about the report r
holds() {
  python3 -c "import json,sys; r = json.load(open('$report')); sys.exit(not ($1))" || fail "not so: $1: $(cat "$report")"
}

# A rank that sends every datagram back, until it hears the word.
cat >"$scratch/echo.py" <<'PY'
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((os.environ["WAN_LAB_ADDRESS"], 9000))
while True:
    data, sender = s.recvfrom(65536)
    if data == b"end":
        break
    s.sendto(data, sender)
PY
cat >"$scratch/ask.py" <<'PY'
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.2)
other = (os.environ["WAN_LAB_ADDRESSES"].split(",")[1], 9000)
times = []
while len(times) < 10:
    begin = time.monotonic()
    s.sendto(b"x", other)
    try:
        s.recv(100)
        times.append(time.monotonic() - begin)
    except (TimeoutError, OSError):  # not there yet
        time.sleep(0.05)
s.sendto(b"end", other)
print(min(times) * 1e3)
PY
pair() {  # FIRST SECOND: programs of ranks 0 and 1
  printf 'if [ "$LEEWAY_RANK" = 0 ]; then %s; else %s; fi' "$1" "$2"
}

echo "A round trip takes as long as it should."
run "$lab" --ranks 2 --rtt 40ms --quiet -- sh -c "$(pair "python3 $scratch/ask.py" "python3 $scratch/echo.py")"
[ $code = 0 ] || fail "exit status $code"
python3 -c "t = float(open('$scratch/out').read()); exit(not 40 <= t < 55)" || fail "not 40 to 55 ms"

echo "A train of segmentation offload is cut into packets, and the line's queue drops what it cannot hold."
cat >"$scratch/train.py" <<'PY'
import os, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(17, 103, 1000)  # UDP_SEGMENT
other = (os.environ["WAN_LAB_ADDRESSES"].split(",")[1], 9)
for _ in range(4):
    s.sendto(bytes(50_000), other)
time.sleep(0.3)
PY
run "$lab" --ranks 2 --rate 8Mb --queue 20000 --quiet --json "$report" -- sh -c "$(pair "python3 $scratch/train.py" "sleep 0.5")"
[ $code = 0 ] || fail "exit status $code"
up="r['links'][0]"
holds "$up['name'] == 'uplink 0' and $up['offered'] == 200"
holds "$up['bytes_passed'] == $up['passed'] * 1028"
holds "19 <= $up['passed'] < 120 and $up['queue_full'] == 200 - $up['passed'] and $up['random_loss'] == 0"

echo "Datagrams of a train, and the bytes of a TCP flow, come as they were sent."
cat >"$scratch/send.py" <<'PY'
import os, random, socket, time
other = os.environ["WAN_LAB_ADDRESSES"].split(",")[1]
data = random.Random(1).randbytes(3_000_000)
for _ in range(100):
    try:
        tcp = socket.create_connection((other, 9001), 1)
        break
    except OSError:  # not there yet
        time.sleep(0.05)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(17, 103, 1000)  # UDP_SEGMENT
udp.sendto(data[:20_500], (other, 9001))
tcp.sendall(data)
PY
cat >"$scratch/take.py" <<'PY'
import os, random, socket
data = random.Random(1).randbytes(3_000_000)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind((os.environ["WAN_LAB_ADDRESS"], 9001))
with socket.create_server((os.environ["WAN_LAB_ADDRESS"], 9001)) as server, server.accept()[0] as tcp:
    came = b"".join(iter(lambda: tcp.recv(1 << 20), b""))
assert came == data, (len(came), len(data))
udp.setblocking(False)
datagrams = 0
try:
    while True:
        piece = udp.recv(65536)
        assert len(piece) in (1000, 500), len(piece)
        assert any(data[at : at + 1000][: len(piece)] == piece for at in range(0, 20_500, 1000))
        datagrams += 1
except BlockingIOError:
    pass
assert int(os.environ["LEAST"]) <= datagrams <= 21, datagrams
PY
LEAST=21 run "$lab" --ranks 2 --rate 100Mb --rtt 4ms --queue 1M --quiet -- sh -c "$(pair "python3 $scratch/send.py" "python3 $scratch/take.py")"
[ $code = 0 ] || fail "exit status $code: $(cat "$scratch/err")"
LEAST=10 run "$lab" --ranks 2 --rate 100Mb --rtt 4ms --queue 1M --loss 3% --quiet -- sh -c "$(pair "python3 $scratch/send.py" "python3 $scratch/take.py")"
[ $code = 0 ] || fail "exit status $code with losses: $(cat "$scratch/err")"

echo "A line has its rate: half a second of too many packets."
cat >"$scratch/flood.py" <<'PY'
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other = (os.environ["WAN_LAB_ADDRESSES"].split(",")[1], 9)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    for _ in range(5):
        s.sendto(bytes(972), other)
    time.sleep(0.001)
time.sleep(0.3)
PY
run "$lab" --ranks 2 --rate 4Mb --queue 20ms --quiet --json "$report" -- sh -c "$(pair "python3 $scratch/flood.py" "sleep 0.9")"
[ $code = 0 ] || fail "exit status $code"
holds "$up['queue_full'] > 0 and 150 <= $up['passed'] <= 290"  # 4 Mb/s for 0.5 s are 250 of 1,000 bytes, and the queue 10

echo "A packet that is longer than the path takes is dropped, and the sender told."
run "$lab" --ranks 2 --path-mtu 900 --tell-path-mtu --quiet --json "$report" -- \
  sh -c "$(pair "ip -br address show wan0 >&2; python3 $scratch/flood.py || true" "sleep 0.9")"
[ $code = 0 ] || fail "exit status $code"
holds "1 <= r['packets']['too_long'] <= 50"  # until the answer is there; the kernel cuts the others

echo "Leeway reduces over it, exactly, under loss."
run env -u LEEWAY_TRANSPORT "$lab" --ranks 3 --rate 50Mb --rtt 10ms --loss 5% --json "$report" -- \
  "$command" perf --op all_reduce --min 64K --max 64K --iters 2 --warmup 1 --check 1
[ $code = 0 ] || fail "leeway perf: exit status $code"
grep -q "Out of bounds values : 0 OK" "$scratch/out" || fail "leeway perf's output is not shown"
grep -q "lost at random" "$scratch/err" || fail "no report"
holds "r['packets']['random_loss'] > 0 and len(r['links']) == 6"

echo "The program's exit status is the tool's."
run "$lab" --ranks 2 --quiet -- sh -c 'exit $((3 * LEEWAY_RANK))'
[ $code = 3 ] || fail "exit status $code, not 3"
run "$lab" --ranks 2 --quiet -- "$scratch/nothing"
[ $code = 127 ] || fail "a missing program: exit status $code, not 127"
run "$lab" --ranks 2 --rate fast -- true
[ $code = 2 ] || fail "a wrong rate: exit status $code, not 2"
grep -q -- "--rate: 'fast' is not a rate" "$scratch/err" || fail "the wrong rate is not named"
run "$lab" --ranks 2 --congctl nosuch -- true
[ $code = 2 ] || fail "an unknown congestion control: exit status $code, not 2"
run "$lab" --ranks 2
[ $code = 2 ] || fail "no program: exit status $code, not 2"

echo "It ends with its ranks, also while something that they left behind still sends."
cat >"$scratch/stream.py" <<'PY'
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(17, 103, 1000)  # UDP_SEGMENT
end = time.monotonic() + 20
while time.monotonic() < end:
    s.sendto(bytes(50_000), (os.environ["WAN_LAB_ADDRESSES"].split(",")[1], 9))
PY
SECONDS=0
run "$lab" --ranks 2 --quiet -- sh -c "$(pair "python3 $scratch/stream.py & sleep 0.5" "sleep 0.5")"
[ $code = 0 ] || fail "exit status $code"
[ $SECONDS -lt 10 ] || fail "it took $SECONDS s"

echo "Nothing is left behind, however it ends."
mark=$((100000 + $$))
sleeping() { pgrep -fc "^sleep $mark" || true; }
for signal in INT TERM KILL; do
  # Who is killed outright cannot end what has left the process group.
  [ $signal = KILL ] && leave= || leave=setsid
  "$lab" --ranks 2 --quiet -- sh -c "sleep $mark & $leave sleep $mark & sleep $mark" 2>"$scratch/err" &
  tool=$!
  for _ in $(seq 100); do
    [ "$(sleeping)" -lt 6 ] || break
    sleep 0.05
  done
  [ "$(sleeping)" = 6 ] || fail "the ranks did not start"
  kill -$signal $tool
  code=0
  wait $tool 2>/dev/null || code=$?
  [ $code -gt 128 ] || fail "SIG$signal: exit status $code"
  for _ in $(seq 20); do
    [ "$(sleeping)" -gt 0 ] || break
    sleep 0.05
  done
  [ "$(sleeping)" = 0 ] || fail "SIG$signal leaves $(sleeping)"
done
echo "all right"
