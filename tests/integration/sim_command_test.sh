#!/usr/bin/env bash
# `leeway sim` as a person runs it: refusals before anything is written, the same results for every number of threads,
# Ctrl-C and --resume, packet traces. $1 is the command.
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"
cp "$(dirname "${BASH_SOURCE[0]}")/../support/small.txtpb" "$scratch"
cd "$scratch"

expect_refusal() {  # $1 what stderr must say, then arguments of sim
  local words=$1
  shift
  run "$leeway" sim "$@"
  [ "$code" = 2 ] || fail "sim $*: exit code $code, not 2"
  [ "$(wc -l <err)" = 1 ] || fail "sim $*: not exactly one line"
  grep -qF -- "$words" err || fail "sim $*: error does not say '$words'"
  [ ! -e results ] || fail "sim $*: wrote results"
}

expect_fine() {
  run "$leeway" sim "$@"
  [ "$code" = 0 ] || fail "sim $*: exit code $code"
  if grep -v '^[0-9]* runs\? (.*): about ' err; then  # a slow machine is told how long it will take
    fail "sim $*: not silent on stderr, which is no terminal"
  fi
}

bad_scenario() {  # $1 what stderr must say, $2 the scenario
  printf '%s' "$2" >bad.txtpb
  expect_refusal "$1" bad.txtpb --out results
}

# Wrong scenarios: place, path, value, what is allowed.
bad_scenario 'bad.txtpb:1:8: Link has no field "rat_mbps"; did you mean "rate_mbps"?' 'link { rat_mbps: 3 }'
bad_scenario 'bad.txtpb:1:24: link[0].loss.random.p is 1.5; allowed is 0 to 1' 'link { loss { random { p: 1.5 } } }'
bad_scenario 'delay_ms.fixed is -1; allowed is 0 to 600000' 'link { delay_ms { fixed: -1 } }'
bad_scenario 'ranks is 0; allowed is 1 to 16384' 'ranks: 0'
bad_scenario 'slow[0].rank is 4; allowed is 0 to 3' 'ranks: 4 slow { rank: 4 factor: 2 }'
bad_scenario 'says nothing' ''
bad_scenario 'bad.txtpb:1:' 'ranks: }'
head -c 1000 /dev/urandom >bad.txtpb
run "$leeway" sim bad.txtpb --out results
[ "$code" = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "noise is not refused in one line"
expect_refusal 'nowhere.txtpb: cannot be read' nowhere.txtpb --out results
expect_refusal 'cannot be read' "$scratch" --out results

# Wrong options.
expect_refusal 'leeway sim FILE' --out results
expect_refusal '--set rankz=3' small.txtpb --out results --set rankz=3
expect_refusal 'did you mean "ranks"?' small.txtpb --out results --set rankz=3
expect_refusal 'write field=value' small.txtpb --out results --set ranks
expect_refusal 'ranks' small.txtpb --out results --set ranks=many
expect_refusal 'link[7]' small.txtpb --out results --set 'link[7].rate_mbps=3'
expect_refusal '--seeds 5..1' small.txtpb --out results --seeds 5..1
expect_refusal '--seeds some' small.txtpb --out results --seeds some
expect_refusal '--json' small.txtpb --out results --json no/such/folder
expect_refusal '--trace holds one run' small.txtpb --out results --trace t
touch file
expect_refusal 'name a folder that you may write to with --out' small.txtpb --out file/results
run "$leeway" sim small.txtpb --jobs 0
[ "$code" = 2 ] || fail "--jobs 0: exit code $code, not 2"

# A grid: every file, and the same ones for every number of threads.
expect_fine small.txtpb --out results --jobs 1
grep -q '^trace  *[0-9a-f]\{16\}$' out || fail "no trace hash"
grep -q '^report  *results/report.html$' out || fail "does not say where the report is"
for file in summary.json rounds.csv links.csv report.html scenario.txtpb runs/0-1.json runs/1-3.json; do
  [ -s "results/$file" ] || fail "no $file"
done
mv out first
expect_fine small.txtpb --out threads --jobs 4
diff -r results threads >differences || fail "threads change results: $(cat differences)"
diff <(grep -v ^report first) <(grep -v ^report out) >/dev/null || fail "threads change the table"
expect_fine small.txtpb --json -
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' out || fail "--json - is not JSON"

# A full disk behind standard output.
for form in --quiet '--json -'; do
  code=0
  "$leeway" sim small.txtpb $form >/dev/full 2>err || code=$?
  [ "$code" = 1 ] && grep -qx 'error: standard output: No space left on device' err ||
    fail "sim $form: exit code $code on a full disk"
done

# Results are neither replaced nor mixed unasked.
mkdir hidden && mv results hidden/results
run "$leeway" sim small.txtpb --out hidden/results
[ "$code" = 2 ] && grep -q -- '--resume' err || fail "results are replaced unasked"
run "$leeway" sim small.txtpb --out hidden/results --resume --set rounds=4
[ "$code" = 2 ] && grep -q 'another scenario' err || fail "results of another scenario are resumed"
expect_fine small.txtpb --out hidden/results --resume
diff -r hidden/results threads >differences || fail "resuming nothing changes results"
expect_fine small.txtpb --out hidden/results --overwrite --set rounds=2
expect_fine hidden/results/scenario.txtpb --out again
for file in rounds.csv links.csv scenario.txtpb; do
  cmp hidden/results/$file again/$file || fail "scenario.txtpb does not give the same $file"
done

# Ctrl-C keeps what has finished. The shell's job control lets the command see the signal.
expect_fine small.txtpb --out whole --seeds 1..40 --set rounds=20
set -m
"$leeway" sim small.txtpb --out stopped --seeds 1..40 --set rounds=20 --jobs 1 >out 2>err &
job=$!
until [ -e stopped/runs/0-2.json ]; do kill -0 $job || fail "ended before it was stopped"; done
kill -INT $job
code=0
wait $job || code=$?
set +m
if [ "$code" = 130 ]; then
  grep -q 'stopped after .* of 80 runs' err || fail "does not say where it stopped"
  [ -s stopped/summary.json ] || fail "no partial results"
  grep -q 'leeway sim small.txtpb --set rounds=20 --seeds 1..40 --jobs 1 --out stopped --resume' err ||
    fail "does not say how to resume"
else
  [ "$code" = 0 ] || fail "interrupted: exit code $code, not 130"
fi
expect_fine small.txtpb --out stopped --seeds 1..40 --set rounds=20 --resume
diff -r whole stopped >differences || fail "a resumed command differs from an uninterrupted one: $(cat differences)"

# Packet traces.
one=(small.txtpb --set 'link[0].loss.random.p=0.05')
expect_fine "${one[@]}" --seeds 1..1 --trace a
with=$(grep ^trace out)
expect_fine "${one[@]}" --seeds 1..1
[ "$with" = "$(grep ^trace out)" ] || fail "a packet trace changes the run"
expect_fine "${one[@]}" --seeds 1..1 --trace b
expect_fine "${one[@]}" --seeds 2..2 --trace c
expect_fine trace diff a b
cmp -s a b || fail "two traces of one run differ"
run "$leeway" sim trace diff a c
[ "$code" = 1 ] && grep -q 'differs in' out || fail "traces of two seeds do not differ"
expect_fine trace show a --step loss --from 1 --limit 3
grep -q 'lost .* 1>.* on uplink 1' out || fail "no lost packet: $(head -3 out)"
expect_fine trace pcapng a a.pcapng
[ -s a.pcapng ] || fail "no pcapng"
head -c 5000 a >cut
expect_refusal 'cut off' trace show cut
expect_refusal 'no packet trace' trace show small.txtpb
expect_refusal 'cannot be read' trace diff a nowhere
expect_refusal '--step' trace show a --step dropped
echo "leeway sim: right"
