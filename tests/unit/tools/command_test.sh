#!/usr/bin/env bash
# What all commands of `leeway` have in common: lost output is a failure, nan is no number, and signals end a command.
# $1 is the command.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/command_test.sh"

expect_lost() {  # $1 exit code, then arguments of leeway
  local wanted=$1
  shift
  code=0
  : >"$scratch/out"
  "$leeway" "$@" >/dev/full 2>"$scratch/err" || code=$?
  [ "$code" = "$wanted" ] || fail "$* on a full disk: exit code $code, not $wanted"
  [ "$(grep -c '^error: standard output: No space left on device$' "$scratch/err")" = 1 ] ||
    fail "$* on a full disk: does not say so once"
}

expect_lost 1 --version
expect_lost 1 --help
expect_lost 1 perf --help
expect_lost 1 doctor
expect_lost 1 doctor --json -
expect_lost 1 codec list
expect_lost 1 codec list --json -
expect_lost 1 keygen
expect_lost 1 perf --ranks 1 --max 4K --iters 1
expect_lost 1 perf --ranks 1 --max 4K --iters 1 --json -
expect_lost 1 top 127.0.0.1:1 --once

# A reader that stops early, with and without SIGPIPE.
"$leeway" codec list --json - 2>"$scratch/err" | head -n 1 >"$scratch/out" || true
[ ! -s "$scratch/err" ] || fail "a closed pipe is called an error"
(trap '' PIPE && "$leeway" codec list --json - 2>"$scratch/err") | true ||
  fail "a closed pipe is a failure where SIGPIPE is ignored"
[ ! -s "$scratch/err" ] || fail "a closed pipe is called an error where SIGPIPE is ignored"

expect_no_number() {  # arguments of leeway
  run "$leeway" "$@"
  [ "$code" = 2 ] || fail "$*: exit code $code, not 2"
  grep -q 'is not a finite number' "$scratch/err" || fail "$*: error does not say that it is no number"
}

for number in nan -nan inf -inf 1e999; do
  expect_no_number perf --deadline-ms=$number
  expect_no_number perf --loss=$number
  expect_no_number perf --burst=$number
  expect_no_number codec inspect /dev/null --sparsity=0.5,$number
done
expect_no_number top 127.0.0.1:1 --every nan  # a range refuses the others
if "$leeway" train --help | grep -q -- --learning-rate; then
  expect_no_number train --learning-rate nan
  expect_no_number train --deadline-ms nan
fi

# Signals. The shell's job control gives the command a process group and does not ignore SIGINT for it.
start_perf() {  # $@ what starts the command
  : >"$scratch/out"
  set -m
  "$@" perf --ranks 2 --max 4K --iters 100000000 >"$scratch/out" 2>"$scratch/err" &
  job=$!
  set +m
  until grep -q busbw "$scratch/out"; do
    kill -0 "$job" || fail "perf ended before it was told to"
    sleep 0.05
  done
}

expect_end() {  # $1 exit code
  code=0
  wait "$job" || code=$?
  [ "$code" = "$1" ] || fail "perf ended with $code, not $1"
}

for signal in HUP INT TERM; do
  start_perf "$leeway"
  kill -s "$signal" "$job"
  expect_end $((128 + $(kill -l "$signal")))
done
without_hangup() {  # as nohup does
  trap '' HUP
  exec "$leeway" "$@"
}
start_perf without_hangup
kill -s HUP -- -"$job"
sleep 0.3
kill -0 "$job" || fail "SIGHUP ends a command that was told to ignore it"
kill -s TERM "$job"
expect_end 143
echo "leeway: right"
