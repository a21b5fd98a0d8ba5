"""Training on CUDA through whatever the process takes for NCCL, beside the same training in one process.

    LD_PRELOAD=.../libnccl.so.2 python3 torch_training.py
    python3 torch_training.py --cpu        # over Gloo: whether this script itself is right

It starts its ranks itself, since one of them dies. Each computes the gradients of all shares of a batch, adds them up in the
order of ranks, and so knows what the others' calls must give, bit for bit. Ranks may share a GPU. A table, and exit status 1
if a row is wrong.
"""

import argparse
import datetime
import os
import signal
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

SIZE = 4
STEPS = 4
ROWS = 8  # of a batch, for each rank
WIDTH = 1024
POLICY = "all_reduce | f32 | >=1MiB -> best_effort(5s) nvfp4"
PARTS = {
    "training": {},
    "non-blocking": {"TORCH_NCCL_USE_COMM_NONBLOCKING": "1"},
    "lossy": {"LEEWAY_NCCL_POLICY": POLICY},
    "killed": {"TORCH_NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"},
}


def model_of(device, dtype):
    torch.manual_seed(7)
    layers = []
    for _ in range(3):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH), torch.nn.GELU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 8)).to(device, dtype)


def batches(size):
    generator = torch.Generator().manual_seed(11)
    return [torch.randn(ROWS * size, WIDTH, generator=generator) for _ in range(STEPS)]


def loss_of(model, share):
    return (model(share).float() - 1).square().mean()


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.02)


def train(model, rank, size, device, dtype):
    optimizer = optimizer_of(model)
    losses = []
    for batch in batches(size):
        optimizer.zero_grad()
        loss = loss_of(model, batch.chunk(size)[rank].to(device, dtype))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def reference(size, device, dtype):
    """What all ranks together should do: gradients are added in float32 and in the order of ranks, and rounded once."""
    model = model_of(device, dtype)
    optimizer = optimizer_of(model)
    for batch in batches(size):
        sums = [torch.zeros_like(one, dtype=torch.float32) for one in model.parameters()]
        for share in batch.chunk(size):
            optimizer.zero_grad()
            loss_of(model, share.to(device, dtype)).backward()
            for total, one in zip(sums, model.parameters()):
                total += (one.grad / size).float()
        for total, one in zip(sums, model.parameters()):
            one.grad = total.to(dtype)
        optimizer.step()
    return flat(model)


def flat(model):
    whole = [one.full_tensor() if hasattr(one, "full_tensor") else one for one in model.parameters()]
    return torch.cat([one.detach().flatten() for one in whole])


class Report:
    def __init__(self, checks, rank):
        self.checks = checks
        self.rank = rank
        self.wrong = 0

    def row(self, name, value, tolerance, note=""):
        """The largest value of all ranks; it may be as large as the tolerance."""
        worst = torch.tensor([value if value == value else float("inf")], dtype=torch.float64)
        dist.all_reduce(worst, dist.ReduceOp.MAX, group=self.checks)
        good = worst.item() <= tolerance
        self.wrong += not good
        if self.rank == 0:
            print(f"{name:34} {'right' if good else 'WRONG':6} {worst.item():<10.3g} {note}".rstrip(), flush=True)


def difference(got, wanted):
    return 0.0 if torch.equal(got, wanted) else (got.double() - wanted.double()).abs().max().item()


def check_training(report, rank, size, device):
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype)[6:]
        wanted = reference(size, device, dtype)
        model = model_of(device, dtype)
        ids = [device.index] if device.type == "cuda" else None
        train(DistributedDataParallel(model, device_ids=ids), rank, size, device, dtype)
        # On the CPU, libraries may split sums by the number of threads.
        slack = 0.0 if device.type == "cuda" else 1e-2
        report.row(f"DDP, {name}", difference(flat(model), wanted), slack)
        sharded = model_of(device, dtype)
        fully_shard(sharded, mesh=init_device_mesh(device.type, (size,)))
        train(sharded, rank, size, device, dtype)
        report.row(f"FSDP2, {name}", difference(flat(sharded), wanted), slack)


def check_splits(report, rank, size, device):
    """Pairs of neighbours, each with a communicator split off."""
    pairs = [[one, one + 1] for one in range(0, size, 2)]
    if device.type == "cuda":
        group = dist.split_group(split_ranks=pairs)
    else:
        group = [dist.new_group(pair) for pair in pairs][rank // 2]
    data = torch.full((100_003,), float(rank + 1), device=device)
    dist.all_reduce(data, group=group)
    first = rank // 2 * 2
    report.row("a group split in pairs", difference(data, torch.full_like(data, first + 1 + first + 2)), 0.0)


def check_lossy(report, rank, size, device):
    """Where the loss ends, relative to where it ends without noise; and that there was noise."""
    exact = model_of(device, torch.float32)
    wanted = reference(size, device, torch.float32)
    torch.nn.utils.vector_to_parameters(wanted, exact.parameters())
    model = model_of(device, torch.float32)
    ids = [device.index] if device.type == "cuda" else None
    train(DistributedDataParallel(model, device_ids=ids), rank, size, device, torch.float32)
    batch = batches(size)[-1].to(device)
    with torch.no_grad():
        lossy, best, first = (loss_of(one, batch).item() for one in (model, exact, model_of(device, torch.float32)))
    report.row("DDP, nvfp4 best effort", abs(lossy - best) / (first - best), 0.05,
               f"of the way from a loss of {first:.3f} to {best:.3f}")
    if device.type == "cuda":
        report.row("which is not exact", 0.0 if (flat(model) - wanted).norm() > 0 else 1.0, 0.0)


def check_killed(rank, device):
    """Rank 1 dies; rank 0's next call fails, its communicator is aborted, and the device is of use."""
    data = torch.ones(1 << 20, device=device)
    dist.all_reduce(data)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.perf_counter()
    try:
        dist.all_reduce(data, async_op=True).wait()  # only this one looks whether it went well
        print(f"a call with a dead peer: succeeded after {time.perf_counter() - begin:.2f} s", flush=True)
        os._exit(1)
    except RuntimeError as error:
        noticed = time.perf_counter() - begin
        text = str(error).split("\n")[0][:90]
    begin = time.perf_counter()
    if device.type == "cuda":
        dist.distributed_c10d._abort_process_group()
        torch.cuda.synchronize(device)
    took = time.perf_counter() - begin
    good = took < 1.0 and torch.ones(10, device=device).sum().item() == 10
    print(f"{'a peer was killed':34} {'right' if good else 'WRONG':6} failed after {noticed:.2f} s, aborted in {took:.3f} s: {text}",
          flush=True)
    os._exit(0 if good else 1)


def work(part, cpu):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cpu")
    if not cpu:
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    more = {} if cpu else {"device_id": device}
    dist.init_process_group("gloo" if cpu else "nccl", timeout=datetime.timedelta(seconds=30), **more)
    if part == "killed":
        check_killed(rank, device)
    report = Report(dist.new_group(backend="gloo"), rank)
    if part == "lossy":
        check_lossy(report, rank, size, device)
    else:
        check_training(report, rank, size, device)
        check_splits(report, rank, size, device)
    dist.barrier(group=report.checks)
    dist.destroy_process_group()
    sys.exit(1 if report.wrong else 0)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(part, cpu):
    """True if all ranks ended well, but for one that was to die."""
    size = 2 if part == "killed" else SIZE
    common = {**os.environ, **PARTS[part], "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1",
              "WORLD_SIZE": str(size), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    command = [sys.executable, __file__, "--part", part] + (["--cpu"] if cpu else [])
    print(f"-- {part}, {size} ranks", flush=True)
    ranks = [subprocess.Popen(command, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(size)]
    codes = [one.wait() for one in ranks]
    wanted = [0, -signal.SIGKILL] if part == "killed" else [0] * size
    if codes != wanted:
        print(f"{part}: exit codes {codes}", flush=True)
    return codes == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cpu", action="store_true", help="over Gloo")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="these parts")
    parser.add_argument("--part", choices=PARTS, help="as one rank of this part")
    arguments = parser.parse_args()
    if arguments.part:
        work(arguments.part, arguments.cpu)
    if not arguments.cpu and not torch.cuda.is_available():
        print("skipped: no CUDA device")
        sys.exit(77)
    good = [run(part, arguments.cpu) for part in arguments.only]
    print(f"{sum(good)} of {len(good)} parts are right")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
