"""Buckets of a gradient travel while the next ones are computed; asyncio waits for each.

    for rank in 0 1; do LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=2 LEEWAY_RENDEZVOUS=127.0.0.1:29601 \\
        python overlap.py & done; wait
"""

import asyncio

import numpy as np

import leeway


async def step(comm, buckets):
    works = []
    for bucket in buckets:
        bucket[:] = comm.rank  # the backward pass would fill it
        works.append(comm.all_reduce_async(bucket, op="avg"))
        await asyncio.sleep(0)  # other tasks of the program run
    return [await work for work in works]


with leeway.Communicator.create() as comm:
    buckets = [np.empty(1 << 18, np.float32) for _ in range(8)]
    reports = asyncio.run(step(comm, buckets))
    assert all((bucket == (comm.size - 1) / 2).all() for bucket in buckets)
    if comm.rank == 0:
        print(f"{len(reports)} buckets of {buckets[0].nbytes >> 20} MiB, each in",
              f"{1e3 * max(report.seconds for report in reports):.1f} ms at most")
