#!/usr/bin/env python3
"""The programs of program_swarm through torch.distributed: collectives, batch_isend_irecv, subgroups, works waited for later.

  torch_programs.py --swarm build/.../program_swarm --seeds 1..200 [--backend leeway] [--idle SECONDS]

A program is drawn by `program_swarm --front nccl --dump SEED`, since c10d has the words of NCCL. Ranks are processes, forked
of one that has imported torch; the ranks of sixteen seeds in a row are the same. Exit status 1 if a program fails.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import numpy
import torch
import torch.distributed as dist

GROUP = 16  # seeds that share their ranks (program.h)
REDUCTIONS = {"all_reduce", "reduce_scatter", "reduce"}
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
         "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
OPS = {"sum": "SUM", "avg": "AVG", "prod": "PRODUCT", "min": "MIN", "max": "MAX"}


def values(step, rank, count):
    """What a rank gives: small whole numbers, whose sums and products every type holds."""
    drawn = (numpy.arange(count, dtype=numpy.uint64) * 2654435761 + rank * 40503 + step["salt"]) >> numpy.uint64(7)
    if step["kind"] in REDUCTIONS:
        return (1 + drawn % 2 if step["op"] == "prod" else drawn % 8).astype(numpy.float64)
    return (drawn % 101).astype(numpy.float64)


def reduced(step, size, count):
    rows = numpy.stack([values(step, rank, count) for rank in range(size)])
    result = {"prod": rows.prod(0), "min": rows.min(0), "max": rows.max(0)}.get(step["op"], rows.sum(0))
    if step["op"] == "avg":
        result = result / size if step["type"] in ("f32", "f64", "f16", "bf16") else result // size
    return result


def tensor(step, array):
    return torch.tensor(array, dtype=TYPES[step["type"]])


class Rank:
    """A rank's part in the programs."""

    def __init__(self, rank, moves):
        self.rank, self.moves = rank, moves

    def play(self, program):
        self.groups, self.pending, self.program = {0: dist.group.WORLD}, [], program
        for at, step in enumerate(program["steps"]):
            self.moves(at)
            self.settle(lambda due: due <= at)
            self.perform(at, step)
        self.moves(len(program["steps"]))
        self.settle(lambda due: True)
        for number, group in self.groups.items():
            if number > 0:
                dist.destroy_process_group(group)

    def settle(self, is_due):
        due = [one for one in self.pending if is_due(one[0])]
        self.pending = [one for one in self.pending if not is_due(one[0])]
        for _, works, check, _ in sorted(due, key=lambda one: (one[3] ^ self.rank) * 2654435761 % 2**32):
            for work in works:
                work.wait()
            check()

    def perform(self, at, step):
        kind, comm = step["kind"], step["comm"]
        if kind in ("split", "create", "shrink"):
            # All ranks call it, as torch wants. A color that nobody gave has no members.
            for number in range(step["made"], step["made"] + (1 + max(step["colors"], default=0) if kind == "split" else 1)):
                members = sorted(self.program["groups"][number])
                group = dist.new_group(members) if members else None
                if self.rank in members:
                    self.groups[number] = group
            return
        if comm not in self.groups:
            return
        if kind == "destroy":
            self.settle(lambda due: True)
            dist.destroy_process_group(self.groups.pop(comm))
        elif kind in ("message", "exchange"):
            self.messages(at, step)
        elif kind in CALLS:
            self.call(at, step)

    def finish(self, at, step, own, works, check):
        how, later = step["ways"][own]
        if how == 0:
            for work in works:
                work.wait()
            check()
        else:
            self.pending.append((at + later, works, check, step["salt"]))

    def messages(self, at, step):
        group, members = self.groups[step["comm"]], sorted(self.program["groups"][step["comm"]])
        own, ops, wanted = members.index(self.rank), [], []
        for index, one in enumerate(step["messages"]):
            if one["from"] == one["to"]:
                continue
            content = values(step, index, one["count"])
            if one["from"] == own:
                ops.append(dist.P2POp(dist.isend, tensor(step, content), members[one["to"]], group))
            if one["to"] == own:
                room = torch.zeros(one["count"], dtype=TYPES[step["type"]])
                ops.append(dist.P2POp(dist.irecv, room, members[one["from"]], group))
                wanted.append((room, content))
        if not ops:
            return

        def check():
            for room, content in wanted:
                self.compare(at, step, room, content)

        self.finish(at, step, own, dist.batch_isend_irecv(ops), check)

    def call(self, at, step):
        group, members = self.groups[step["comm"]], sorted(self.program["groups"][step["comm"]])
        own, size = members.index(self.rank), len(members)
        result, wanted, work = CALLS[step["kind"]](step, group, members, own, size)

        def check():
            if wanted is not None:
                self.compare(at, step, result, wanted)

        self.finish(at, step, own, [work], check)

    def compare(self, at, step, got, wanted):
        got = got.to(torch.float64).numpy()
        near = {"rtol": 0.01} if step["op"] == "avg" and step["kind"] in REDUCTIONS else {"rtol": 0, "atol": 0}
        if not numpy.allclose(got, wanted, **near):
            where = int(numpy.argmax(got != wanted))
            raise AssertionError(f"step {at}, {step['kind']}: element {where} is {got[where]}, not {wanted[where]}")


def op_of(step):
    return getattr(dist.ReduceOp, OPS.get(step["op"], "SUM"))


def all_reduce(step, group, members, own, size):
    data = tensor(step, values(step, own, step["count"]))
    return data, reduced(step, size, step["count"]), dist.all_reduce(data, op_of(step), group, async_op=True)


def reduce_scatter(step, group, members, own, size):
    count = step["count"]
    out = torch.zeros(count, dtype=TYPES[step["type"]])
    work = dist.reduce_scatter_tensor(out, tensor(step, values(step, own, count * size)), op_of(step), group, async_op=True)
    return out, reduced(step, size, count * size)[own * count:(own + 1) * count], work


def all_gather(step, group, members, own, size):
    count = step["count"]
    out = torch.zeros(count * size, dtype=TYPES[step["type"]])
    work = dist.all_gather_into_tensor(out, tensor(step, values(step, own, count)), group, async_op=True)
    return out, numpy.concatenate([values(step, rank, count) for rank in range(size)]), work


def broadcast(step, group, members, own, size):
    data = tensor(step, values(step, own, step["count"]))
    work = dist.broadcast(data, members[step["root"]], group, async_op=True)
    return data, values(step, step["root"], step["count"]), work


def reduce(step, group, members, own, size):
    data = tensor(step, values(step, own, step["count"]))
    work = dist.reduce(data, members[step["root"]], op_of(step), group, async_op=True)
    return data, reduced(step, size, step["count"]) if own == step["root"] else None, work


def gather(step, group, members, own, size):
    count, is_root = step["count"], own == step["root"]
    out = torch.zeros((size, count), dtype=TYPES[step["type"]])
    work = dist.gather(tensor(step, values(step, own, count)), list(out) if is_root else None, members[step["root"]], group,
                       async_op=True)
    return out.flatten(), numpy.concatenate([values(step, rank, count) for rank in range(size)]) if is_root else None, work


def scatter(step, group, members, own, size):
    count, root = step["count"], step["root"]
    out = torch.zeros(count, dtype=TYPES[step["type"]])
    parts = list(tensor(step, values(step, root, count * size)).reshape(size, count)) if own == root else None
    return out, values(step, root, count * size)[own * count:(own + 1) * count], dist.scatter(out, parts, members[root], group,
                                                                                             async_op=True)


def all_to_all(step, group, members, own, size):
    count = step["count"]
    out = torch.zeros(count * size, dtype=TYPES[step["type"]])
    work = dist.all_to_all_single(out, tensor(step, values(step, own, count * size)), group=group, async_op=True)
    return out, numpy.concatenate([values(step, rank, count * size)[own * count:(own + 1) * count] for rank in range(size)]), work


CALLS = {one.__name__: one for one in (all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all)}


def be_rank(rank, programs, meeting, backend, board):
    """In a process of its own; the board has a line for each rank: the program, a count of its moves, the step."""
    torch.set_num_threads(1)
    if backend == "leeway":
        import leeway.torch  # noqa: F401
    dist.init_process_group(backend, init_method="file://" + meeting, rank=rank, world_size=programs[0]["ranks"])

    def moves(step):
        board[rank, 1:] = board[rank, 1] + 1, step

    one = Rank(rank, moves)
    for number, program in enumerate(programs):
        board[rank, 0] = number
        one.play(program)
    dist.destroy_process_group()


def run_group(programs, args):
    """None, or what is wrong and the number of the program."""
    size = programs[0]["ranks"]
    with tempfile.TemporaryDirectory() as folder:
        board = numpy.memmap(os.path.join(folder, "board"), dtype=numpy.int64, mode="w+", shape=(size, 3))
        children = []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    be_rank(rank, programs, os.path.join(folder, "meeting"), args.backend, board)
                    status = 0
                except BaseException:
                    traceback.print_exc()
                os._exit(status)
            children.append(child)
        why, moved, last = None, time.monotonic(), -1
        alive = set(children)
        while alive and why is None:
            time.sleep(0.002)
            for child in list(alive):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    alive.discard(child)
                    if status:
                        why = f"rank {children.index(child)} ended with status {status}"
            if board[:, 1].sum() != last:
                last, moved = board[:, 1].sum(), time.monotonic()
            elif time.monotonic() - moved > args.idle:
                why = f"hang: ranks are in programs {board[:, 0].tolist()}, at steps {board[:, 2].tolist()}"
        for child in alive:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return None if why is None else (why, int(board[:, 0].min()))


def drawn(args, seed):
    text = subprocess.run([args.swarm, "--front", "nccl", "--route", "auto", "--dump", str(seed)], check=True,
                          capture_output=True, text=True).stdout
    program = json.loads(text)
    for step in program["steps"]:
        if step["type"] not in TYPES:
            step["type"] = "f32"
    # A rank that leaves is not for c10d, whose works then raise what the backend likes.
    program["steps"] = [step for step in program["steps"] if step["kind"] not in ("wrong", "sync", "abort", "fork", "leave", "pause", "allocate")
                        and not (step["kind"] == "destroy" and step["who"] != 0xFF)]
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swarm", required=True, help="the program program_swarm")
    parser.add_argument("--seeds", default="1..64")
    parser.add_argument("--backend", default="leeway")
    parser.add_argument("--idle", type=float, default=20.0, help="seconds without progress: a hang")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(".."))
    begun, count, failed, seed = time.monotonic(), 0, 0, first
    while seed <= last:
        end = min(last, seed // GROUP * GROUP + GROUP - 1)
        programs = [drawn(args, one) for one in range(seed, end + 1)]
        outcome = run_group(programs, args)
        if outcome:
            why, at = outcome
            failed += 1
            print(f"FAILED seed {seed + at}: {why}\n{json.dumps(programs[at])}", file=sys.stderr)
        count += len(programs)
        seed = end + 1
    print(f"{count} programs, {count / (time.monotonic() - begun):.0f} a second; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
