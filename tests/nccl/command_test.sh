#!/usr/bin/env bash
# `leeway nccl` puts the drop-in in front, and `leeway doctor PROGRAM` says whether that reaches a program.
#   command_test.sh LEEWAY_COMMAND STUB PROGRAM_THAT_NEEDS_IT PROGRAM_THAT_OPENS_IT PROGRAM_WITH_IT_LINKED_IN
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"
stub=$(realpath "$2") needs=$3 opens=$4 linked_in=$5

run "$leeway" nccl --print
[ "$code" = 0 ] && [ "$(cat "$scratch/out")" = "$stub" ] || fail "the command does not find $stub"

run "$leeway" nccl -- "$opens"
[ "$code" = 0 ] || fail "a program that opens libnccl.so.2 ends with $code"
grep -qx "22809 $stub" "$scratch/out" || fail "it opened another library"

run "$leeway" nccl --net --print
[ "$code" = 0 ] && [ "$(cat "$scratch/out")" = "$(realpath "$(dirname "$stub")/../../libnccl-net-leeway.so")" ] ||
  fail "the command does not find the network plugin"
run "$leeway" nccl --net -- sh -c 'echo "$NCCL_NET $NCCL_NET_PLUGIN ${LD_PRELOAD:-none}"'
grep -qx "Leeway .*/libnccl-net-leeway.so none" "$scratch/out" || fail "NCCL is not told of the network plugin"

# A child's child is reached too, and words behind -- are the program's.
run "$leeway" nccl --trace "$scratch/trace" -- sh -c "echo --print \$LEEWAY_NCCL_TRACE; exec $opens"
grep -qx -- "--print $scratch/trace" "$scratch/out" || fail "arguments and variables do not arrive"
grep -qx "22809 $stub" "$scratch/out" || fail "a child's child has another library"

run env LD_PRELOAD="$stub" "$leeway" nccl -- sh -c 'echo "$LD_PRELOAD"'
grep -qx "$stub:$stub" "$scratch/out" || fail "other preloaded libraries are lost"

run "$leeway" nccl -- "$scratch/nothing"
[ "$code" = 127 ] || fail "a program that is not there gives $code"
run "$leeway" nccl
[ "$code" = 2 ] || fail "no program gives $code"

# A command without its libraries: installed alone, or in a build tree where they were not built.
mkdir -p "$scratch/tree/bin"
cp "$leeway" "$scratch/tree/bin/leeway"
lacks() { # what it must say, arguments
  run "$scratch/tree/bin/leeway" nccl "${@:2}" -- true
  [ "$code" = 1 ] || fail "without its libraries it gives $code"
  grep -q -- "$1" "$scratch/err" || fail "does not say: $1"
}
lacks "apt-get install leeway-nccl"
touch "$scratch/tree/CMakeCache.txt"
lacks "cmake --build $scratch/tree --target leeway_nccl_stub$"
lacks "cmake --build $scratch/tree --target leeway_nccl_stub leeway_nccl_net$" --net

says() {
  run "$leeway" doctor "$1"
  grep -q -- "$2" "$scratch/out" || fail "doctor does not say of $1: $2"
}
says "$needs" "has the loader look for it: $(dirname "$stub")"
says "$opens" "opens it by itself"
says "$linked_in" "has NCCL linked in"
says "$linked_in" "leeway nccl --net -- $linked_in"
says /bin/sh "names no NCCL"
says "${BASH_SOURCE[0]}" "a script"
says "$scratch/nothing" "cannot be read"
[ "$code" = 1 ] || fail "a file that is not there gives $code"
head -c 4000 "$needs" >"$scratch/cut"
run "$leeway" doctor "$scratch/cut"
[ "$code" -le 1 ] || fail "a program that was cut off gives $code"

# Who answers, over what, and whether strangers can read it.
printf '%s\n' 'import ctypes' 'class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]' \
  'nccl, handle, made = ctypes.CDLL("libnccl.so.2"), ctypes.c_void_p(), Id()' 'nccl.ncclGetUniqueId(ctypes.byref(made))' \
  'nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]' \
  'nccl.ncclCommInitRank(ctypes.byref(handle), 1, made, 0)' >"$scratch/alone.py"
run env NCCL_DEBUG=INFO LEEWAY_NCCL_POLICY='all_gather -> best_effort(1s)' "$leeway" nccl -- python3 "$scratch/alone.py"
grep -q "NCCL version 2.28.9, by Leeway" "$scratch/out" || fail "the version is not said"
grep -q 'INFO comm "" rank 0 nranks 1: over udp, .*, sealed' "$scratch/out" || fail "what carries a communicator is not said"
grep -q 'WARN LEEWAY_NCCL_POLICY: rule 1, .* decides nothing' "$scratch/out" || fail "a rule that decides nothing is not said"
