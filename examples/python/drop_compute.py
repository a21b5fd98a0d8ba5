"""A step ends when its time is up, not when the slowest rank is done; the average is per completed micro-batch.

    for rank in 0 1; do LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=2 LEEWAY_RENDEZVOUS=127.0.0.1:29603 \\
        python drop_compute.py & done; wait
"""

import time

import numpy as np

import leeway

with leeway.Communicator.create() as comm:
    budget = leeway.ComputeBudget(comm, micro_batches=8, threshold="60ms", warm_up_steps=1)
    for step in range(6):
        gradient = np.zeros(1000, np.float32)
        while budget.next_micro_batch():
            time.sleep(0.005 if comm.rank == 0 else 0.015)  # rank 1 is slow
            gradient += 1  # the backward pass adds to it
        report = comm.all_reduce(gradient, op="avg", weight=budget.weight)
        assert np.allclose(gradient, 1)
        print(f"rank {comm.rank}, step {step}: {budget.completed} of 8 micro-batches")
    budget.synchronize()
    if comm.rank == 0:
        counts = budget.statistics().all_ranks
        print(f"{counts.dropped} of {counts.planned} micro-batches dropped")
