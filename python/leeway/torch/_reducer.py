"""Gradients of a model that is trained without DistributedDataParallel, averaged after the last backward pass of a step."""

import torch

from .. import CollectiveOptions, InvalidArgumentError
from ._flat import Layout, dense_gradient, trainable
from ._groups import OnGroup, repaired_later


class _Bucket:
    def __init__(self, numbered, error_feedback):
        self.numbers = [number for number, _ in numbered]
        self.layout = Layout([parameter for _, parameter in numbered])
        self.flat = self.layout.zeros()
        self.views = self.layout.views(self.flat)
        self.residual = self.layout.zeros() if error_feedback else None

    def fill(self):
        for parameter, view in zip(self.layout.parameters, self.views):
            gradient = dense_gradient(parameter)
            if gradient is None:
                view.zero_()
            else:
                view.copy_(gradient)


class GradientReducer(OnGroup):
    """Averages gradients over ranks from flat buckets, per unit of work: what DropCompute needs, since no rank knows beforehand
    which of its backward passes is the last.

        reducer = GradientReducer(model, lossy)
        for batch in budget.step(loader):
            model(batch).mean().backward()                    # gradients add up
        reducer.reduce(weight=budget.weight); opt.step(); opt.zero_grad()

    model: a Module, whose parameters and buffers get rank 0's values, or parameters; float32, float16 or bfloat16. Gradients
        are added in float32, and travel as `codec` says: "bf16", say.
    options: a CollectiveOptions; its delivery, codec and estimator count. None: exact. The ranks' results are bitwise equal.
    bucket_bytes: bytes of one call. Buckets travel at the same time.
    error_feedback: what the codec's rounding left out of a gradient is added to the next one.
    process_group: its ranks take part, on any backend. None: all ranks. Or a leeway.Communicator.
    """

    def __init__(self, model, options=None, *, bucket_bytes=25 << 20, error_feedback=False, process_group=None):
        if options is not None and not isinstance(options, CollectiveOptions):
            raise InvalidArgumentError(f"options: {options!r} is not a leeway.CollectiveOptions")
        self._options = (options or CollectiveOptions()).replace(op="avg")
        if str(self._options.spread) != "exact":
            raise InvalidArgumentError("options: spread must be exact, or the ranks' parameters would drift apart for good. "
                                       "ReplicaOptimizer bounds the drift")
        self._options = repaired_later(self._options)
        module = model if isinstance(model, torch.nn.Module) else None
        self._parameters = trainable(module.parameters() if module else model)
        for parameter in self._parameters:
            if parameter.dtype not in (torch.float32, torch.float16, torch.bfloat16):
                raise InvalidArgumentError(f"a parameter of shape {tuple(parameter.shape)} is {parameter.dtype}: gradients are "
                                           "averaged in float32, for float32, float16 and bfloat16; convert the model")
        self._buckets = [_Bucket(bucket, error_feedback) for bucket in _in_buckets(self._parameters, bucket_bytes)]
        self._join(process_group, "reducer")
        self.repeated = 0
        with torch.no_grad():
            for tensor in [*self._parameters, *(module.buffers() if module else ())]:
                self._broadcast(tensor)

    def _broadcast(self, tensor):
        values = tensor.detach().contiguous()
        self._communicator.broadcast(values, 0)
        if values.data_ptr() != tensor.data_ptr():
            tensor.copy_(values)

    @torch.no_grad()
    def reduce(self, weight=1.0):
        """Every .grad becomes the mean per unit of work over all ranks. Returns the leeway.Report of each bucket.

        weight: the units (micro-batches, say) whose gradients .grad is the sum of; 0: this rank has done none, and takes part.
        A parameter that no rank used keeps .grad None. Where a deadline passed before some rank held a bucket's mean, all ranks
        average that bucket again, exactly, and `repeated` counts it.
        """
        works = [self._begin(bucket, self._options, weight) for bucket in self._buckets]
        reports = [work.wait() for work in works]
        used = [weight != 0 and parameter.grad is not None for parameter in self._parameters]
        not_used, have_all = self._agree([not one for one in used], [report.complete for report in reports])
        for number, bucket in enumerate(self._buckets):
            if not have_all[number]:
                self.repeated += 1
                reports[number] = self._begin(bucket, CollectiveOptions(op="avg"), weight).wait()
            for of_parameter, view in zip(bucket.numbers, bucket.views):
                parameter = self._parameters[of_parameter]
                if not_used[of_parameter]:
                    parameter.grad = None
                elif parameter.grad is None:
                    parameter.grad = view.to(parameter.dtype, copy=True)
                else:
                    parameter.grad.copy_(view)
        return reports

    def _begin(self, bucket, options, weight):
        bucket.fill()
        changes = {} if bucket.residual is None else {"residual": bucket.residual}
        return self._communicator.all_reduce_async(bucket.flat, options, weight=weight, **changes)

    def _agree(self, *flags):
        """Returns the flags, each True if it is True on all ranks. Exact, since replicated optimizers must do the same."""
        counts = [len(part) for part in flags]
        values = torch.tensor([flag for part in flags for flag in part], dtype=torch.uint8)
        self._communicator.all_reduce(values, op="min")
        return [part.bool().tolist() for part in values.split(counts)]

    def state_dict(self):
        """Returns what error feedback still owes; empty without it."""
        return {f"rank{self._communicator.rank}": [bucket.residual for bucket in self._buckets if bucket.residual is not None]}

    @torch.no_grad()
    def load_state_dict(self, state_dict):
        """Goes on where state_dict() was made, with the same parameters and buckets, on as many ranks."""
        saved = state_dict.get(f"rank{self._communicator.rank}", [])
        mine = [bucket.residual for bucket in self._buckets if bucket.residual is not None]
        if [r.numel() for r in saved] != [r.numel() for r in mine]:
            raise InvalidArgumentError("the state is that of other parameters, buckets or error_feedback than these")
        for residual, values in zip(mine, saved):
            residual.copy_(values)


def _in_buckets(parameters, bucket_bytes):
    """Returns lists of (number, parameter), the last parameters first, because their gradients are ready first."""
    buckets, filled = [], bucket_bytes
    for number, parameter in reversed(list(enumerate(parameters))):
        if filled >= bucket_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append((number, parameter))
        filled += 4 * parameter.numel()
    return buckets
