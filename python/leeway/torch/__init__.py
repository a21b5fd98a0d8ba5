"""PyTorch over Leeway: `torch.distributed.init_process_group("leeway")`, and what loses packets on purpose.

    import torch.distributed as dist, leeway, leeway.torch as lt
    dist.init_process_group("leeway")                       # exact, for unchanged scripts
    lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("20ms"), codec="nvfp4")
    group = dist.new_group(backend="leeway", pg_options=lt.Options(gradients=lossy))
"""

import atexit
import importlib
import os

try:
    import torch
    import torch.distributed
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "leeway.torch needs PyTorch 2.9 or later, and this Python has none: pip install torch, then in Leeway's sources "
        "pip install --no-build-isolation --force-reinstall --no-deps .", name="torch") from error

from .. import CollectiveOptions, InvalidArgumentError, UnavailableError
from ._budget import ComputeBudget
from ._diloco import DiLoCo
from ._reducer import GradientReducer
from ._replica import ReplicaOptimizer

__all__ = ["ComputeBudget", "DiLoCo", "GradientReducer", "Options", "ReplicaOptimizer", "register"]


def _load():
    """Loads the extension for this torch. Raises UnavailableError, which says how to build it."""
    major, minor = torch.__version__.split(".")[:2]
    try:
        return importlib.import_module(f"._c10d_{major}_{minor}", __name__)
    except ModuleNotFoundError as error:
        built = sorted(name[len("_c10d_"):].split(".")[0].replace("_", ".") for name in os.listdir(os.path.dirname(__file__))
                       if name.startswith("_c10d_"))
        have = f"built for torch {', '.join(built)}" if built else "built without torch"
        raise UnavailableError(
            f"leeway.torch is {have}, and this is torch {torch.__version__}. Rebuild it for this one, in Leeway's sources: "
            "pip install --no-build-isolation --force-reinstall --no-deps .") from error


try:
    _c10d, _missing = _load(), None
    atexit.register(_c10d.shutdown_all)
except UnavailableError as error:
    # Everything but the backend needs no extension, and works with other backends.
    _c10d, _missing = None, error


class Options(_c10d.BackendOptions if _c10d else object):
    """pg_options of a process group.

    gradients: a CollectiveOptions for sums and averages of floating types of at least lossy_min_bytes bytes. Its delivery,
    codec and estimator count; the operation is the call's. Everything else is exact, with the group's timeout as deadline.
    """

    def __init__(self, gradients=None, *, lossy_min_bytes=64 << 10):
        if _missing:
            raise _missing
        super().__init__()
        self.lossy_min_bytes = lossy_min_bytes
        if gradients is None:
            return
        if not isinstance(gradients, CollectiveOptions):
            raise InvalidArgumentError(f"gradients: {gradients!r} is not a leeway.CollectiveOptions")
        delivery = gradients.delivery
        self.set_gradients(delivery.kind, delivery.loss_max, delivery.deadline, gradients.codec, gradients.estimator)


_NAME = "".join(chr(c) for c in range(128) if chr(c).isalnum() or chr(c) in "._-%")


def _create(options, backend_options, name="leeway"):
    if _missing:
        raise _missing
    if backend_options is not None and not isinstance(backend_options, _c10d.BackendOptions):
        raise InvalidArgumentError(f"pg_options: {backend_options!r} is not a leeway.torch.Options")
    group = "".join(c if c in _NAME else "-" for c in str(options.group_id)) or "world"
    return _c10d.create(options.store, options.group_rank, options.group_size, group, options.timeout, backend_options, name)


def register():
    """Makes "leeway" a backend of torch.distributed. Importing this module does so already."""
    backend = torch.distributed.Backend
    if "leeway" not in backend.backend_list:
        backend.register_backend("leeway", _create, extended_api=True, devices=["cpu", "cuda"])


register()

from . import ddp, fsdp  # noqa: E402, F401
