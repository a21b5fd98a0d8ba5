#!/usr/bin/env bash
# Parts of a simulation that several processes make with --shard, as ranks of mpirun where it is there, and `leeway sim merge`:
# the whole is that of one process, byte for byte. $1 is the command.
set -e  # what follows belongs into the folder that this makes
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"
cp "$(dirname "${BASH_SOURCE[0]}")/../support/small.txtpb" "$scratch"
cd "$scratch"

expect() {  # $1 exit code, $2 what stdout and stderr must say together, then a command
  local wanted=$1 words=$2
  shift 2
  run "$@"
  [ "$code" = "$wanted" ] || fail "$*: exit code $code, not $wanted"
  cat out err | grep -qF -- "$words" || fail "$*: does not say '$words'"
}

same_folder() {
  diff -r "$1" "$2" >differences || fail "$2 differs from $1: $(head -5 differences)"
}

expect 0 'all passed' "$leeway" sim small.txtpb --out whole

# A folder each, as on machines without a common file system.
for i in 1 2 3 4; do expect 0 "shard $i of 4" "$leeway" sim small.txtpb --out part-$i --shard $i/4; done
expect 1 '2 of 6 runs are in no part' "$leeway" sim merge part-1 part-3 part-4 --out incomplete
expect 0 'all passed' "$leeway" sim merge part-* --out merged
same_folder whole merged
expect 2 'holds results' "$leeway" sim merge part-* --out merged
expect 0 'all passed' "$leeway" sim merge part-* --out merged --overwrite --json merged.json
cmp merged.json whole/summary.json || fail "--json of the whole differs"

# Parts that do not belong together, damage, and what is no part.
expect 0 'shard 1 of 2' "$leeway" sim small.txtpb --out other --shard 1/2 --set rounds=4
expect 2 'other holds another scenario' "$leeway" sim merge part-1 other
sed 's/"trace_hash":"[0-9a-f]\{4\}/"trace_hash":"0000/' part-1/runs/0-1.json >changed
cp -r part-1 changed-part && mv changed changed-part/runs/0-1.json
expect 2 'changed-part has another run' "$leeway" sim merge part-1 changed-part
truncate -s 100 changed-part/runs/0-1.json
expect 1 '5 of 6 runs are in no part' "$leeway" sim merge changed-part
expect 2 'holds no results' "$leeway" sim merge "$scratch"

# Processes of a launcher that share a folder.
launch() {  # $1 how many, then a command
  local ranks=$1
  shift
  if command -v mpirun >/dev/null; then
    run mpirun --allow-run-as-root --oversubscribe -np "$ranks" "$@"
    [ "$code" = 0 ] || fail "mpirun $*: exit code $code"
  else
    for ((rank = 0; rank < ranks; ++rank)); do
      expect 0 "shard $((rank + 1)) of $ranks" env LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=$ranks "$@"
    done
  fi
}
launch 3 "$leeway" sim small.txtpb --out shared --jobs 1
expect 0 'all passed' "$leeway" sim merge shared
same_folder whole shared

# The swarm.
expect 0 '0 failed' "$leeway" sim swarm --seeds 1..60 --json whole.json
cat >swarm_part <<'SCRIPT'
exec "$1" sim swarm --seeds 1..60 --jobs 1 --json "swarm-${OMPI_COMM_WORLD_RANK:-$LEEWAY_RANK}.json"
SCRIPT
launch 3 bash swarm_part "$leeway"
expect 2 'is in no part' "$leeway" sim merge swarm-0.json swarm-2.json
expect 0 '60 seeds' "$leeway" sim merge swarm-*.json --json merged.json
diff <(grep -v seconds whole.json) <(grep -v seconds merged.json) || fail "the swarm's whole differs"
grep -q '"trace_hash": "[0-9a-f]\{16\}"' merged.json || fail "no hash of the swarm"
expect 2 'is no outcome' "$leeway" sim merge small.txtpb
echo "leeway sim --shard and merge: right"
