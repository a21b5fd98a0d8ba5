#!/usr/bin/env bash
# Nothing in deploy/ starts a rank that should have a secret and has none, or one that is root. Slurm and ssh are stubs here,
# which say that they were reached.
#   deploy_test.sh DEPLOY_FOLDER
source "$(dirname "${BASH_SOURCE[0]}")/../support/command_test.sh"
deploy=$1

mkdir "$scratch/bin" "$scratch/home"
printf '#!/bin/sh\necho host0\n' >"$scratch/bin/scontrol"
for tool in srun ssh; do printf '#!/bin/sh\necho "started with ${LEEWAY_SECRET_FILE:-no secret}: $*"\n' >"$scratch/bin/$tool"; done
chmod +x "$scratch"/bin/*
export PATH=$scratch/bin:$PATH HOME=$scratch/home SLURM_JOB_NODELIST=host0 SLURM_JOB_ID=7
unset LEEWAY_SECRET_FILE

refuses() { # what it must say, command
  run "${@:2}"
  [ "$code" != 0 ] || fail "goes on without a secret: ${*:2}"
  ! grep -q started "$scratch/out" || fail "started a rank without a secret: ${*:2}"
  grep -q -- "$1" "$scratch/err" || fail "does not say \"$1\": ${*:2}"
}

refuses "no secret at $HOME/.leeway.key" bash "$deploy/slurm/train.sbatch" true
LEEWAY_SECRET_FILE=$HOME/misspelt.key refuses "no secret at $HOME/misspelt.key" bash "$deploy/slurm/train.sbatch" true
: >"$HOME/.leeway.key"
run bash "$deploy/slurm/train.sbatch" true
grep -q "started with $HOME/.leeway.key: .*true" "$scratch/out" || fail "the secret does not reach srun"

refuses "--secret FILE" "$deploy/hosts/start" host0 true
refuses "--secret FILE" "$deploy/hosts/start" --secret "" host0 true
run "$deploy/hosts/start" --secret "$HOME/.leeway.key" host0 true
grep -q "LEEWAY_SECRET_FILE=$HOME/.leeway.key" "$scratch/out" || fail "the secret does not reach the host"

grep -q '^DynamicUser=yes' "$deploy/hosts/leeway@.service" || fail "systemd's rank is root"
grep -q '^LoadCredential=secret:' "$deploy/hosts/leeway@.service" || fail "systemd's rank starts without a secret"
for line in 'kind: NetworkPolicy' 'runAsNonRoot: true' 'fsGroup: ' 'allowPrivilegeEscalation: false' 'secretName: leeway'; do
  grep -q "$line" "$deploy/kubernetes/leeway.yaml" || fail "leeway.yaml has no $line"
done
! grep -q 'optional: true' "$deploy/kubernetes/leeway.yaml" || fail "the pod starts without a secret"
