"""torch.distributed on CUDA tensors through whatever the process takes for NCCL, beside what the CPU computes.

    LD_PRELOAD=.../libnccl.so.2 python3 -m torch.distributed.run --standalone --nproc-per-node 2 torch_collectives.py
    ... torch_collectives.py --lossy       # with LEEWAY_NCCL_POLICY: one large sum, whose error is measured
    ... torch_collectives.py --cpu         # over Gloo: whether this script itself is right

Every rank makes the tensors of all ranks, so that it knows each result. They hold small whole numbers, whose sums all types
have: results are compared bit for bit. Ranks may share a GPU. Rank 0 prints a table; the exit status is 1 if a row is wrong.
"""

import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

ELEMENTS = (7, 100_003, 1 << 20)
LOSSY_ELEMENTS = 4 << 20
ROUNDS = 5


class Table:
    """One row for each check, in which all ranks take part."""

    def __init__(self, device):
        self.device = device
        self.rows = []
        self.wrong = 0

    def row(self, name, tensor, count, run, wanted, tolerance=0.0):
        """run() does the operation and returns this rank's result, or None where it has none; again for its time. `wanted`
        is on the CPU."""
        try:
            got = run()
            difference = 0.0 if got is None else largest_difference(got.cpu(), wanted)
            times = [timed(run, self.device) for _ in range(ROUNDS)]
            self.add(name, tensor, count, difference, tolerance, 1e3 * statistics.median(times))
        except (RuntimeError, ValueError, NotImplementedError) as error:
            if self.device.type == "cuda":
                raise
            self.rows.append((name, tensor, count, "Gloo has none", "", str(error).split("\n")[0][:60]))

    def add(self, name, tensor, count, difference, tolerance, milliseconds):
        worst = torch.tensor([difference], dtype=torch.float64)
        dist.all_reduce(worst, dist.ReduceOp.MAX, group=self.checks)
        good = worst.item() <= tolerance
        self.wrong += not good
        self.rows.append((name, tensor, count, "right" if good else "WRONG", f"{worst.item():.3g}", f"{milliseconds:.3f}"))

    def print(self, title):
        print(title)
        widths = (26, 10, 10, 14, 12, 10)
        for row in [("operation", "type", "elements", "result", "difference", "ms"), *self.rows]:
            print(" ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def largest_difference(got, wanted):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    if torch.equal(got, wanted):
        return 0.0
    return (got.double() - wanted.double()).abs().nan_to_num(nan=float("inf")).max().item()


def timed(run, device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begin = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin


def values(rank, count, dtype):
    generator = torch.Generator().manual_seed(1000 * rank + count)
    return torch.randint(0, 8, (count,), generator=generator).to(dtype)


def check_reductions(table, rank, size, gloo):
    operations = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN, "avg": dist.ReduceOp.AVG}
    if not gloo:
        operations["premul_sum"] = dist._make_nccl_premul_sum(2.0)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8):
        for name, operation in operations.items():
            if name in ("avg", "premul_sum") and not dtype.is_floating_point:
                continue
            # torch 2.11 hands NCCL a factor that is no bfloat16: NVIDIA's own gives these sums too.
            if name == "premul_sum" and dtype == torch.bfloat16:
                continue
            for count in ELEMENTS if name == "sum" else ELEMENTS[1:2]:
                all_values = torch.stack([values(one, count, torch.float64) for one in range(size)])
                wanted = {"sum": all_values.sum(0), "max": all_values.max(0)[0], "min": all_values.min(0)[0],
                          "avg": all_values.sum(0) / size, "premul_sum": 2 * all_values.sum(0)}[name].to(dtype)
                own = values(rank, count, dtype).to(table.device)

                def run(own=own, operation=operation):
                    data = own.clone()
                    dist.all_reduce(data, operation)
                    return data

                # An average of sizes that are no power of two is rounded in two places.
                exact = name != "avg" or size & (size - 1) == 0
                table.row(f"all_reduce {name}", str(dtype)[6:], count, run, wanted,
                          0.0 if exact else 8 * torch.finfo(dtype).eps)


def check_movements(table, rank, size):
    root = size - 1
    for dtype in (torch.float32, torch.uint8):
        for count in ELEMENTS:
            name = str(dtype)[6:]
            blocks = [values(one, count, dtype) for one in range(size)]
            rows = [values(100 + one, count * size, dtype) for one in range(size)]
            own, row = blocks[rank].to(table.device), rows[rank].to(table.device)

            def broadcast():
                data = own.clone()
                dist.broadcast(data, root)
                return data

            def reduce():
                data = own.clone()
                dist.reduce(data, root)
                return data if rank == root else None

            def all_gather():
                out = torch.empty(count * size, dtype=dtype, device=table.device)
                dist.all_gather_into_tensor(out, own)
                return out

            def reduce_scatter():
                out = torch.empty(count, dtype=dtype, device=table.device)
                dist.reduce_scatter_tensor(out, row)
                return out

            def all_to_all():
                out = torch.empty_like(row)
                dist.all_to_all_single(out, row)
                return out

            def gather():
                out = [torch.empty_like(own) for _ in range(size)] if rank == root else None
                dist.gather(own, out, root)
                return torch.cat(out) if rank == root else None

            def scatter():
                out = torch.empty_like(own)
                dist.scatter(out, list(row.chunk(size)) if rank == root else None, root)
                return out

            def ring():
                out = torch.empty_like(own)
                messages = [dist.P2POp(dist.isend, own, (rank + 1) % size),
                            dist.P2POp(dist.irecv, out, (rank - 1) % size)]
                for work in dist.batch_isend_irecv(messages):
                    work.wait()
                return out

            mine = slice(rank * count, (rank + 1) * count)
            total = torch.stack(blocks).to(torch.int64).sum(0).to(dtype)
            sums = torch.stack(rows).to(torch.int64).sum(0).to(dtype)[mine]
            for run, wanted in ((broadcast, blocks[root]), (reduce, total), (all_gather, torch.cat(blocks)),
                                (reduce_scatter, sums), (all_to_all, torch.cat([one[mine] for one in rows])),
                                (gather, torch.cat(blocks)), (scatter, rows[root][mine]),
                                (ring, blocks[(rank - 1) % size])):
                table.row(run.__name__, name, count, run, wanted)


def check_groups(table, rank, size):
    """Every rank but the last, and a graph of several calls."""
    few = dist.new_group(list(range(size - 1)) or [0])
    count = ELEMENTS[1]
    if rank < max(size - 1, 1):
        data = values(rank, count, torch.float32).to(table.device)
        dist.all_reduce(data, group=few)
        wanted = torch.stack([values(one, count, torch.float32) for one in range(max(size - 1, 1))]).sum(0)
        difference = largest_difference(data.cpu(), wanted)
    else:
        difference = 0.0
    table.add("all_reduce of a subgroup", "float32", count, difference, 0.0, 0.0)
    if table.device.type != "cuda":
        return
    data = values(rank, count, torch.float32).to(table.device)
    first = data.clone()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        dist.all_reduce(data)  # the communicator is made outside of the capture
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(data)
        data.mul_(0.5)
    data.copy_(first)
    for _ in range(3):
        graph.replay()
    wanted = torch.stack([values(one, count, torch.float32) for one in range(size)]).sum(0) * 0.5
    wanted = wanted * (size * 0.5) ** 2
    table.add("graph, third replay", "float32", count, largest_difference(data.cpu(), wanted), 0.0, 0.0)


def check_lossy(table, rank, size):
    """One large sum of normal numbers: its mean squared error, relative to the sum's own mean square."""
    def normal(one):
        return torch.randn(LOSSY_ELEMENTS, generator=torch.Generator().manual_seed(one))

    wanted = sum(normal(one).double() for one in range(size))
    own = normal(rank).to(table.device)
    data = own.clone()
    dist.all_reduce(data)
    error = ((data.cpu().double() - wanted).square().mean() / wanted.square().mean()).item()

    def run():
        dist.all_reduce(own.clone())

    times = [timed(run, table.device) for _ in range(ROUNDS)]
    table.add("all_reduce, NMSE", "float32", LOSSY_ELEMENTS, error, 0.05, 1e3 * statistics.median(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cpu", action="store_true", help="over Gloo")
    parser.add_argument("--sums", action="store_true", help="all-reduces alone")
    parser.add_argument("--lossy", action="store_true", help="one large sum, whose error is measured")
    arguments = parser.parse_args()
    device = torch.device("cpu")
    if not arguments.cpu:
        if not torch.cuda.is_available():
            print("skipped: no CUDA device")
            sys.exit(77)
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if arguments.cpu else "nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    table = Table(device)
    table.checks = dist.new_group(backend="gloo")
    if arguments.lossy:
        check_lossy(table, rank, size)
    else:
        check_reductions(table, rank, size, arguments.cpu)
        if not arguments.sums:
            check_movements(table, rank, size)
            check_groups(table, rank, size)
    if rank == 0:
        version = "" if arguments.cpu else f", NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}"
        table.print(f"torch {torch.__version__}, {size} ranks on {device.type}{version}")
        print(f"{len(table.rows)} rows, {table.wrong} wrong")
    dist.barrier(group=table.checks)
    dist.destroy_process_group()
    sys.exit(1 if table.wrong else 0)


if __name__ == "__main__":
    main()
