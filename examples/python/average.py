"""Averages a gradient over a network that loses 10 % of its packets, and says what was missing.

    for rank in 0 1; do LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=2 LEEWAY_RENDEZVOUS=127.0.0.1:29600 \\
        LEEWAY_FAULT=loss=0.1 python average.py & done; wait
"""

import numpy as np

import leeway

with leeway.Communicator.create() as comm:
    rng = np.random.default_rng(comm.rank)
    lossy = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("500ms"), codec="nvfp4")
    for step in range(5):
        gradient = 1 + 0.1 * rng.standard_normal(1 << 20, dtype=np.float32)
        report = comm.all_reduce(gradient, lossy)
        if comm.rank == 0:
            print(f"step {step}: mean {gradient.mean():.4f}, lost {report.loss:.1%}, "
                  f"{report.contributors.mean:.2f} of {comm.size} contributors, {1e3 * report.seconds:.1f} ms")
    assert abs(gradient.mean() - 1) < 0.01
