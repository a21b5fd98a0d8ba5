"""Collectives that stay fast and right on networks that lose packets.

    import leeway, numpy

    with leeway.Communicator.create() as comm:           # torchrun, mpirun, srun, or LEEWAY_* variables
        gradient = numpy.ones(1 << 20, numpy.float32)
        comm.all_reduce(gradient)                         # exact: bitwise equal on all ranks
        report = comm.all_reduce(gradient, op="avg", delivery=leeway.best_effort("20ms"))
        print(report.loss, report.contributors.mean)      # what was missing, exactly

Arrays are anything with DLPack or the buffer protocol (NumPy, torch, JAX) in host memory. Every call has an
asynchronous twin that returns Work: wait for it, or await it in asyncio. PyTorch: `import leeway.torch`.
"""

import atexit

try:
    from . import _core
except ImportError as error:
    from . import _libraries

    raise ImportError(_libraries.explain(error), name=__name__) from error

from ._core import (  # noqa: F401
    CODECS,
    CancelledError,
    CollectiveOptions,
    Communicator,
    ComputeBudget,
    ComputeCounts,
    ComputeStatistics,
    Contributors,
    DeadlineExceededError,
    Delivery,
    DriftReport,
    Error,
    FileRendezvous,
    InprocRendezvous,
    InternalError,
    InvalidArgumentError,
    LateWork,
    LateWorkStatistics,
    MessageReport,
    MismatchError,
    Noise,
    PeerLostError,
    PeerReport,
    Rendezvous,
    Replica,
    ReplicaOptions,
    Report,
    ResourceExhaustedError,
    TcpRendezvous,
    ThresholdEstimate,
    Typed,
    UnavailableError,
    UnsupportedError,
    Work,
    __version__,
    best_effort,
    bounded,
    decode,
    encode,
    exact,
    typed,
)
from . import _asyncio

Work.__await__ = _asyncio.wait_in_loop
# Peers hear that this process has left, and need not find out that it is dead.
atexit.register(_core._close_all)
