#!/usr/bin/env bash
# `leeway codec` as a person runs it: exit codes, one-line errors, tables and JSON. $1 is the command.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/command_test.sh"

expect_refusal() {  # $1 exit code, $2 what stderr must say, then arguments of codec
  local wanted=$1 words=$2
  shift 2
  run "$leeway" codec "$@"
  [ "$code" = "$wanted" ] || fail "codec $*: exit code $code, not $wanted"
  [ "$(wc -l <"$scratch/err")" = 1 ] || fail "codec $*: not exactly one line"
  grep -q -- "$words" "$scratch/err" || fail "codec $*: error does not say '$words'"
}

expect_json() {  # $1 a python expression over the document d
  [ "$code" = 0 ] || fail "exit code $code"
  python3 -c "import json, sys; d = json.load(open(sys.argv[1])); assert $1, d" "$scratch/out" || fail "JSON: not $1"
}

run "$leeway" codec
[ "$code" = 2 ] || fail "codec without a subcommand: exit code $code, not 2"
run "$leeway" codec inspect
[ "$code" = 2 ] || fail "inspect without a file: exit code $code, not 2"
expect_refusal 2 'nvfp5' bench --codec nvfp5
expect_refusal 2 '8K to 4G' bench --bytes 1K
expect_refusal 2 '--sparsity' inspect /dev/null --sparsity 85
expect_refusal 1 'nowhere' inspect "$scratch/nowhere"
expect_refusal 1 'directory' inspect "$scratch"
expect_refusal 1 'is empty' inspect /dev/null
printf 'seven b' >"$scratch/odd"
expect_refusal 1 'not a multiple of 4' inspect "$scratch/odd"
expect_refusal 1 'cannot write' list --json "$scratch/no/such/folder"

run "$leeway" codec list
[ "$code" = 0 ] && grep -q '^nvfp4  *4\.504' "$scratch/out" || fail "list"
run "$leeway" codec list --json -
expect_json 'any(f["codec"] == "nvfp4" and 20 < f["normal_nearest_dB"] < 21 for f in d["formats"])'

run "$leeway" codec bench --codec nvfp4 --bytes 64K --json -
expect_json 'd["rows"][0]["codec"] == "nvfp4" and d["rows"][0]["decode_accumulate"]["to_memcpy"] > 0'
[ ! -s "$scratch/err" ] || fail "bench shows progress although stderr is no terminal"

python3 - "$scratch/gradient" <<'DATA'
import array, random, sys
draw = random.Random(1)
array.array("f", [draw.gauss(0, 1) for _ in range(20000)]).tofile(open(sys.argv[1], "wb"))
DATA
run "$leeway" codec inspect "$scratch/gradient" --json -
expect_json 'd["elements"] == 20000 and d["best"]["nearest"]["4 bits"] == "nvfp4"'
run "$leeway" codec inspect - --json - <"$scratch/gradient"
expect_json 'd["file"] == "standard input" and abs(d["mean_square"] - 1) < 0.1'
echo "leeway codec: right"
