"""DiLoCo's outer step for JAX through DLPack: no compiled extension, one array that both libraries see. NumPy where JAX is missing.

    for rank in 0 1; do LEEWAY_RANK=$rank LEEWAY_WORLD_SIZE=2 LEEWAY_RENDEZVOUS=127.0.0.1:29604 \\
        LEEWAY_FAULT=loss=0.1 python outer_step_jax.py & done; wait
"""

import numpy as np

import leeway

try:
    import jax
    import jax.numpy as jnp

    gradient_of = jax.jit(jax.grad(lambda w, x, y: jnp.mean((x @ w - y) ** 2)))
    to_local = jnp.array  # a copy: JAX's arrays do not change
except ModuleNotFoundError:
    jax = None

    def gradient_of(w, x, y):
        return 2 * x.T @ (x @ w - y) / y.size

    to_local = np.array

EVERY, OUTER_RATE, MOMENTUM = 20, 0.7, 0.9

with leeway.Communicator.create() as comm:
    rng = np.random.default_rng(comm.rank)
    target = np.random.default_rng(42).standard_normal((256, 128), dtype=np.float32)  # what training should find
    lossy = leeway.CollectiveOptions(op="avg", delivery=leeway.bounded(0.01, "5s"), codec="nvfp4")
    agreed, momentum = np.zeros_like(target), np.zeros_like(target)
    lost = 0
    for outer_step in range(12):
        w = to_local(agreed)
        for _ in range(EVERY):
            x = rng.standard_normal((64, 256), dtype=np.float32)
            w = w - 6.4 * gradient_of(w, x, x @ target)
        moved = agreed - np.from_dlpack(w)
        report = comm.all_reduce(moved, lossy)  # the mean, bitwise the same on all ranks
        lost += report.loss_first_pass / 12
        momentum = MOMENTUM * momentum + moved
        agreed -= OUTER_RATE * (moved + MOMENTUM * momentum)
    error = float(np.abs(agreed - target).mean())
    lowest, highest = agreed.copy(), agreed.copy()
    comm.all_reduce(lowest, op="min")
    comm.all_reduce(highest, op="max")
    assert (lowest == highest).all() and error < 0.1
    if comm.rank == 0:
        print(f"{'JAX' if jax else 'NumPy, since JAX is missing'}: error {error:.4f}, "
              f"the network lost {lost:.1%}")
