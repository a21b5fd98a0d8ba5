"""Parameters that every rank holds and owns a shard of: lossy gradients in, lossy parameters out, bounded drift.

    for rank in 0 1 2 3; do LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=4 LEEWAY_RENDEZVOUS=127.0.0.1:29602 \\
        LEEWAY_FAULT=loss=0.1 python replica.py & done; wait
"""

import numpy as np

import leeway

ELEMENTS = 300_000

with leeway.Communicator.create() as comm:
    rng = np.random.default_rng(comm.rank)
    target = np.random.default_rng(42).standard_normal(ELEMENTS, dtype=np.float32)  # what training should find
    parameters = np.zeros(ELEMENTS, np.float32)
    replica = leeway.Replica(comm, parameters, leeway.ReplicaOptions(age_max=8))
    lossy = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("500ms"))
    begin, end = replica.owned_range
    for step in range(60):
        noise = 0.1 * rng.standard_normal(ELEMENTS, dtype=np.float32)
        gradient = parameters - target + noise  # of this rank's samples
        replica.reduce_gradients(gradient, lossy)
        replica.owned()[:] -= 0.1 * gradient[begin:end]  # any optimizer, of this rank's shard alone
        replica.broadcast_parameters()
    replica.synchronize()  # before evaluation and checkpoints
    error = float(np.abs(parameters - target).mean())
    if comm.rank == 0:
        print(f"mean error {error:.4f};", replica.drift())
    assert error < 0.05
