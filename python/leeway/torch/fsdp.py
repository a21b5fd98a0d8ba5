"""FSDP2 (fully_shard) over Leeway: gradients lossy where they are told to be, parameters exact.

    model = torch.distributed.fsdp.fully_shard(model)
    lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("20ms"), codec="nvfp4")
    comms = lt.fsdp.use(model, reduce_scatter=lossy)
    loss.backward(); print(comms.report())

HSDP (a mesh of two dimensions): the reduce-scatters run inside the mesh's shard dimension, which is often one machine and loses
nothing; an all_reduce of each shard runs across the other, which is often the slow line. use() does not change that
all_reduce. To make it lossy, give its dimension a backend of its own:

    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"),
                            backend_override={"replicate": ("leeway", lt.Options(gradients=lossy))})

Lossy all-gathers of parameters would need to know the age of each value: that is leeway.Replica.

CUDA tensors are copied to pinned host memory and back; no test has run that on a GPU yet.
"""

import dataclasses

import torch

from .. import CollectiveOptions, InvalidArgumentError, UnsupportedError, exact
from ._groups import communicator_of
from ._staging import on_host

__all__ = ["Comms", "Report", "use"]

_USER = "leeway.torch.fsdp"


@dataclasses.dataclass(frozen=True)
class Report:
    """Outcome of the reduce-scatters since the last report(), as this rank saw it."""

    calls: int
    loss: float  # part of the packets missing, mean over elements
    contributors: float  # ranks in an element's average, mean over elements
    late: int  # packets that came after their call had settled
    seconds: float  # of all calls together
    bytes_sent: int
    deadline_cut: int  # calls that the deadline ended
    elements_untouched: int  # elements to which nobody contributed; they are zeros


def _bases():
    try:
        from torch.distributed.fsdp import FSDPModule
        from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter

        FSDPModule.set_custom_reduce_scatter, FSDPModule.set_custom_all_gather  # noqa: B018
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(f"leeway.torch.fsdp needs torch >= 2.9, where FSDP2 takes custom collectives; this is "
                               f"{torch.__version__}. DistributedDataParallel with leeway.torch.ddp works there") from error
    return FSDPModule, ReduceScatter, AllGather


class Comms:
    """The communicators of a model's FSDP modules, one for each process group, and what was lost on them."""

    def __init__(self, lossy, communicator_options):
        self._lossy, self._options = lossy, communicator_options
        self._by_group = {}
        self._reports = []

    def of(self, group):
        """Returns the leeway.Communicator of a group. All ranks of the group ask for it at the same time."""
        communicator = self._by_group.get(group)
        if communicator is None:
            communicator = self._by_group[group] = communicator_of(group, "fsdp", **self._options)
        return communicator

    def report(self):
        """Returns a Report of the reduce-scatters since the last report, or None if there were none."""
        reports, self._reports = self._reports, []
        if not reports:
            return None
        elements = sum(count for _, count, _ in reports)

        def mean(of):
            return sum(of(report, size) * count for report, count, size in reports) / max(elements, 1)

        return Report(
            calls=len(reports), loss=mean(lambda report, _: report.loss),
            contributors=mean(lambda report, size: report.contributors.mean if report.contributors.histogram else size),
            late=sum(peer.late for report, _, _ in reports for peer in report.peers),
            seconds=sum(report.seconds for report, _, _ in reports),
            bytes_sent=sum(report.bytes_sent for report, _, _ in reports),
            deadline_cut=sum(report.deadline_cut for report, _, _ in reports),
            elements_untouched=sum(report.elements_untouched for report, _, _ in reports))

    def reduce_scatter(self, output, source, group, op):
        communicator = self.of(group)
        name, factor = _meaning(op)
        # Floating sums and averages may lose something; whatever else FSDP asks for is exact.
        lossy = self._lossy if source.is_floating_point() and name in ("sum", "avg", "premul_sum") else CollectiveOptions()
        source, result = on_host(source, _USER), on_host(output, _USER)
        report = communicator.reduce_scatter(source, result, lossy, op=name, factor=factor)
        if result is not output:
            output.copy_(result)
        self._reports.append((report, source.numel(), communicator.size))

    def all_gather(self, output, source, group, options):
        result = on_host(output, _USER)
        self.of(group).all_gather(on_host(source, _USER), result, options)
        if result is not output:
            output.copy_(result)

    def close(self):
        """Leaves all communicators. The model's gradients cannot be reduced afterwards."""
        for communicator in self._by_group.values():
            communicator.close()
        self._by_group = {}


def _meaning(op):
    """Returns torch's reduction as Leeway's name and factor."""
    kind = getattr(op, "op", op)
    names = {"SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max", "PREMUL_SUM": "premul_sum"}
    name = names.get(str(kind).rpartition(".")[2])
    if name is None:
        raise UnsupportedError(f"FSDP2 asks for the reduction {op}, which leeway.torch.fsdp does not have")
    if name != "premul_sum":
        return name, 1
    return name, float(op.__getstate__()[1])


def use(model, reduce_scatter=None, all_gather=None, **communicator_options):
    """Gives all FSDP modules in `model` Leeway's reduce-scatters and all-gathers; returns their Comms.

    reduce_scatter: a leeway.CollectiveOptions, lossy or not; its operation is FSDP's. None: exact, over Leeway.
    all_gather: None leaves all-gathers to the process group. Else an exact leeway.CollectiveOptions.
    communicator_options: of the communicators, which are made at the first reduction of each process group.

    Call it after the last fully_shard(), on all ranks. Modules whose parameters lie in several groups (shard_placement_fn with
    several meshes) are refused: torch has no custom collectives for them.
    """
    FSDPModule, ReduceScatter, AllGather = _bases()
    for name, options in (("reduce_scatter", reduce_scatter), ("all_gather", all_gather)):
        if options is not None and not isinstance(options, CollectiveOptions):
            raise InvalidArgumentError(f"{name}: {options!r} is not a leeway.CollectiveOptions")
    if all_gather is not None and all_gather.delivery.kind != "exact":
        raise InvalidArgumentError("all_gather: parameters are gathered exactly; stale ones are what leeway.Replica is for")
    modules = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not modules:
        raise InvalidArgumentError("the model has no FSDP modules: call torch.distributed.fsdp.fully_shard() first")
    comms = Comms(reduce_scatter or CollectiveOptions(delivery=exact()), communicator_options)

    class LeewayReduceScatter(_Allocating, ReduceScatter):
        def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
            comms.reduce_scatter(output_tensor, input_tensor, group, op)

    class LeewayAllGather(_Allocating, AllGather):
        def __call__(self, output_tensor, input_tensor, group, async_op=False):
            comms.all_gather(output_tensor, input_tensor, group, all_gather)

    for module in modules:
        try:
            module.set_custom_reduce_scatter(LeewayReduceScatter())
            if all_gather is not None:
                module.set_custom_all_gather(LeewayAllGather())
        except ValueError as error:
            raise InvalidArgumentError(f"{type(module).__name__} has parameters in several groups, for which torch has no custom "
                                       f"collectives: {error}") from error
    return comms


class _Allocating:
    def allocate(self, size, *, dtype, device):
        return torch.empty(*size, dtype=dtype, device=device)
