#!/usr/bin/env bash
# `leeway perf` as a person runs it: its exit codes, its one-line errors, its table and its JSON. $1 is the command.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/command_test.sh"

expect_refusal() {  # $1 what stderr must say, then arguments of perf
  local words=$1
  shift
  run "$leeway" perf "$@"
  [ "$code" = 2 ] || fail "perf $*: exit code $code, not 2"
  [ "$(grep -c '^error: ' "$scratch/err")" = 1 ] || fail "perf $*: not exactly one error"
  grep -q -- "$words" "$scratch/err" || fail "perf $*: error does not say '$words'"
}

expect_rows() {  # $1 how many rows; every one has 18 words and no wrong element
  [ "$code" = 0 ] || fail "exit code $code"
  awk -v wanted="$1" '
    !/^#/ { ++rows; if (NF != 18 || $9 != 0) bad = 1 }
    END { exit !(rows == wanted && !bad) }' "$scratch/out" || fail "rows are not as expected"
  grep -q '^# Out of bounds values : 0 OK$' "$scratch/out" || fail "footer is missing"
}

expect_refusal "'sum_all'" --op sum_all
expect_refusal "'4Q'" --min 4Q
expect_refusal "'sometimes'" --delivery sometimes
expect_refusal "--root" --op broadcast --ranks 2 --root 2
expect_refusal '"int3"' --codec int3
expect_refusal "--transport" --transport tcp
expect_refusal "--spread-codec" --op reduce_scatter --spread-codec bf16
expect_refusal "best_effort" --op all_gather --ranks 2 --delivery best_effort

run "$leeway" perf --ranks 4 --min 4K --max 256K --factor 8 --iters 3 --loss 0.1 --json "$scratch/rows.json"
expect_rows 3
python3 - "$scratch/rows.json" <<'CHECK' || fail "JSON is not as expected"
import json, sys
rows = json.load(open(sys.argv[1]))
assert [row["bytes"] for row in rows] == [4096, 32768, 262144], rows
assert all(row["ranks"] == 4 and row["wrong"] == 0 and row["loss_injected"] == 0.1 for row in rows), rows
assert rows[-1]["loss_observed"] > 0.03, rows
CHECK

run "$leeway" perf --ranks 2 --min 64K --max 64K --iters 3 --transport udp --multicast --json "$scratch/rows.json"
expect_rows 1
grep -q '^# transport udp, multicast on$' "$scratch/out" || fail "header does not name the transport"
grep -q '"transport": "udp"' "$scratch/rows.json" || fail "JSON does not name the transport"

run "$leeway" perf --ranks 2 --min 64K --max 64K --iters 3 --codec nvfp4 --spread-codec bf16 --json "$scratch/rows.json"
[ "$code" = 0 ] || fail "exit code $code"
grep -q 'codec nvfp4 (spread bf16)' "$scratch/out" || fail "preamble does not name the codecs"
python3 - "$scratch/rows.json" <<'CHECK' || fail "JSON of a rounding codec is not as expected"
import json, sys
(row,) = json.load(open(sys.argv[1]))
assert row["codec"] == row["codec_used"] == "nvfp4" and row["spread_codec"] == "bf16", row
assert row["wrong"] is None and 0 < row["nmse"] < 0.1, row
CHECK

run "$leeway" perf --ranks 1 --min 4K --max 4K --iters 2
expect_rows 1

if command -v mpirun >/dev/null; then
  run mpirun --allow-run-as-root --oversubscribe -np 4 "$leeway" perf --min 4K --max 4K --iters 3
  expect_rows 1
fi
echo "leeway perf: right"
