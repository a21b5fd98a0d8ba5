"""A communication hook for DistributedDataParallel that averages gradients over Leeway, lossy where it is told to be.

    ddp = torch.nn.parallel.DistributedDataParallel(model)
    lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("20ms"), codec="nvfp4")
    state = lt.ddp.HookState(lossy, step_deadline="200ms")
    ddp.register_comm_hook(state, lt.ddp.hook)
    loss.backward(); print(state.report())

DDP's own group may have any backend: gradients go through a communicator that the state owns.
"""

import time

import torch

from .. import CollectiveOptions, InvalidArgumentError, best_effort, bounded, exact
from ._ddp_step import Step, StepReport
from ._groups import communicator_of, group_of, repaired_later
from ._staging import on_host

__all__ = ["HookState", "StepReport", "hook"]

# Seconds that a bucket has at least, even if those before it took the whole step's time. So what has arrived is used.
_LEFT_MIN = 1e-3


class _Memory:
    """What a bucket remembers between steps: float32 tensors by kind, flat as the bucket."""

    def __init__(self, elements, kinds):
        self.flat = {kind: torch.zeros(elements) for kind in kinds}
        self.is_new = True

    def pay(self, gradient):
        """Adds what earlier buckets left out to the gradient of an exact bucket, which itself leaves nothing out."""
        if self.is_new and "residual" in self.flat:
            gradient += self.flat["residual"]
            self.flat["residual"].zero_()
        self.is_new = False


class HookState:
    """State of `hook`, one for each DistributedDataParallel. All ranks of the group make it, in the same order.

    options: a leeway.CollectiveOptions for buckets of floating types; its operation is always the average. None: exact.
    process_group: that of the DistributedDataParallel; None: the default one. Any backend.
    exact_below: buckets of fewer bytes are exact, and travel as they are.
    step_deadline: seconds, or "200ms", for the lossy buckets of a backward pass together, from its first bucket on: buckets
        queue, so each has what is left. What is computed between two buckets counts, too. None: each has the delivery's own
        deadline.
    error_feedback: what the codec leaves out of a gradient is added to the next step's. It stays with its parameters where DDP
        forms other buckets (after the first step). Nothing changes with codec "native", which leaves nothing out.
    weight: units of work (samples) behind this rank's gradient, may be set before each backward(). A gradient is then the *sum*
        over its units and the result the mean per unit, sum of G / sum of weights. The default 1 everywhere: the mean over ranks.
        A rank with 0 contributes nothing.

    keep_equal: after a lossy pass ranks tell each other, exactly, what they lack of the results that the deadline cut, and then
        take that bucket from the rank that has most of it. So the replicas of the model stay equal, bit by bit, for a round trip
        more; but each pass waits for all ranks, and fails if one is dead. False: nobody waits longer than the deadlines, and
        replicas drift apart where a deadline cuts.

    CUDA gradients are copied to pinned host memory and back; no test has run that on a GPU yet. `with`, or close(), leaves the
    communicator.
    """

    def __init__(self, options=None, *, process_group=None, exact_below=65536, step_deadline=None, error_feedback=False,
                 weight=1.0, keep_equal=True, **communicator_options):
        if options is None:
            options = CollectiveOptions()
        if not isinstance(options, CollectiveOptions):
            raise InvalidArgumentError(f"options: {options!r} is not a leeway.CollectiveOptions")
        group_of(process_group)
        self.exact_below = exact_below
        self.step_deadline = step_deadline
        self.error_feedback = error_feedback
        self.keep_equal = keep_equal
        self._options = repaired_later(options.replace(op="avg"))
        self._delivery = options.delivery
        self._lossy = options.delivery.kind != "exact"
        self._exact = CollectiveOptions(op="avg", delivery=options.delivery if options.delivery.kind == "exact" else exact())
        self.weight = weight
        kinds = {"residual": error_feedback and options.codec != "native", "control_variate": options.estimator == "augmented"}
        self._kinds = [kind for kind, wanted in kinds.items() if wanted]
        self._memories = {}  # by the addresses of the bucket's parameters
        self._places = {}  # of a parameter's address: its memory, offset and element count
        self._step = self._last = None
        self._steps = 0
        self._communicator = communicator_of(process_group, "ddp", **communicator_options)

    @property
    def communicator(self):
        """The leeway.Communicator that carries the gradients."""
        return self._communicator

    @property
    def weight(self):
        return self._weight

    @weight.setter
    def weight(self, weight):
        self._options.weight = self._exact.weight = weight
        self._weight = weight

    @property
    def step_deadline(self):
        return self._step_deadline

    @step_deadline.setter
    def step_deadline(self, deadline):
        self._seconds = None if deadline is None else exact(deadline).deadline
        self._step_deadline = deadline

    def report(self):
        """The StepReport of the last backward pass that has ended, None before the first."""
        done = self._step if self._step is not None and self._step.done else self._last
        return None if done is None else done.report()

    def close(self):
        """Leaves the communicator. The hook cannot be called afterwards."""
        self._communicator.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def state_dict(self, model=None):
        """Returns what the next step needs, for a checkpoint of this rank, by names of the model's parameters.

        Names begin with the rank, so that torch.distributed.checkpoint keeps all ranks' tensors apart. Other ranks than those
        that were saved begin without what the codec left out.
        """
        saved = {"step": self._steps, "weight": self._weight, "memory": {}}
        for name, parameter in self._named(model):
            memory, offset, count = self._places.get(parameter.data_ptr(), (None, 0, 0))
            for kind in self._kinds if memory else ():
                kept = memory.flat[kind][offset:offset + count].view_as(parameter).clone()
                saved["memory"][f"rank{self._communicator.rank}.{kind}.{name}"] = kept
        return saved

    def load_state_dict(self, saved, model=None):
        """Takes up what state_dict() of the same rank saved. Call it before the first backward(), or between two."""
        self._steps = saved["step"]
        self.weight = saved["weight"]
        self._memories, self._places = {}, {}
        for name, parameter in self._named(model):
            memory = _Memory(parameter.numel(), self._kinds)
            for kind in self._kinds:
                kept = saved["memory"].get(f"rank{self._communicator.rank}.{kind}.{name}")
                if kept is not None:
                    memory.flat[kind].copy_(kept.flatten())
            # A parameter is alone in a bucket until DDP says in which one it is.
            self._places[parameter.data_ptr()] = (memory, 0, parameter.numel())

    def _named(self, model):
        if not self._kinds:
            return []
        if not isinstance(model, torch.nn.Module):
            raise InvalidArgumentError("what the hook remembers belongs to parameters: give the model, or its "
                                       f"DistributedDataParallel, not {model!r}")
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model = model.module
        return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]

    def _memory_of(self, bucket, elements):
        parameters = bucket.parameters()
        addresses = tuple([parameter.data_ptr() for parameter in parameters])
        memory = self._memories.get(addresses)
        if memory is None:
            memory = self._memories[addresses] = self._moved(addresses, [parameter.numel() for parameter in parameters], elements)
        return memory

    def _moved(self, addresses, counts, elements):
        """Makes the memory of a new bucket from the buckets in which its parameters were."""
        memory = _Memory(elements, self._kinds)
        offset = 0
        for address, count in zip(addresses, counts):
            old, start, known = self._places.get(address, (None, 0, 0))
            for kind in self._kinds if known == count else ():
                memory.flat[kind][offset:offset + count] = old.flat[kind][start:start + count]
            self._places[address] = (memory, offset, count)
            offset += count
        used = {id(place[0]) for place in self._places.values()}
        self._memories = {key: one for key, one in self._memories.items() if id(one) in used}
        return memory

    def _begin(self):
        if self._step is not None and self._step.done:
            self._last = self._step
        self._step = Step(self._steps, self._communicator, self.keep_equal)
        self._steps += 1

    def _delivery_now(self):
        left = self._step.begun + self._seconds - time.perf_counter()
        deadline = max(min(left, self._delivery.deadline), _LEFT_MIN)
        return best_effort(deadline) if self._delivery.kind == "best_effort" else bounded(self._delivery.loss_max, deadline)

    def _reduce(self, bucket):
        gradient = bucket.buffer()
        if bucket.index() == 0 or self._step is None:
            self._begin()
        complex_numbers = _is_complex(gradient)
        real = torch.view_as_real(gradient) if complex_numbers else gradient
        result = on_host(real, "leeway.torch.ddp")
        memory = self._memory_of(bucket, gradient.numel()) if self._kinds and not complex_numbers else None
        if gradient.nbytes < self.exact_below:
            if memory is not None:
                memory.pay(result)
            lossy, work = False, self._communicator.all_reduce_async(result, self._exact)
        else:
            lossy, changes = self._lossy, {}
            if memory is not None:
                # The memory is float32, so other gradients are converted to it, as codecs do.
                result, changes = result.float(), dict(memory.flat)
            if lossy and self._seconds is not None:
                changes["delivery"] = self._delivery_now()
            work = self._communicator.all_reduce_async(result, self._options, **changes)

        variate = memory.flat.get("control_variate") if lossy and memory is not None else None
        after = None
        if result is not real or variate is not None:

            def after():
                if result is not real:
                    real.copy_(result)
                if variate is not None:
                    variate.copy_(result)

        future = self._step.add(work, gradient, result, lossy, after)
        if bucket.is_last():
            self._step.close()
        return future


def _is_complex(gradient):
    if gradient.is_floating_point():
        return False
    if gradient.is_complex():
        return True
    raise InvalidArgumentError(
        f"a bucket of {gradient.dtype}: leeway.torch.ddp averages gradients of floating types. Leave these parameters out of "
        "DDP (requires_grad=False, or register them as buffers) and reduce them by torch.distributed.all_reduce")


def hook(state, bucket):
    """For DistributedDataParallel.register_comm_hook(HookState(...), hook): the bucket's average over all ranks.

    Begins the call and returns; what it fails with is raised by backward().
    """
    return state._reduce(bucket)
