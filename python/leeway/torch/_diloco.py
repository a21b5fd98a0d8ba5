"""DiLoCo: each rank trains by itself. Every few hundred steps an outer optimizer follows the mean of how far they have moved."""

import zlib

import torch

from .. import CollectiveOptions, DeadlineExceededError, InvalidArgumentError
from ._flat import Layout, trainable
from ._groups import OnGroup, repaired_later


class _Fragment:
    """A part of the parameters: the values that all ranks agreed on last, and how far this rank has moved from them."""

    def __init__(self, parameters, offset, outer, error_feedback):
        self.offset = offset  # inner steps modulo `every` at which its outer step is due
        self.begun = 0        # number of inner steps at which its last outer step began
        self.local = parameters
        layout = Layout(parameters)
        self.agreed, self.moved = layout.zeros(), layout.zeros()
        self.residual = layout.zeros() if error_feedback else None
        self._moved_views = layout.views(self.moved)
        self._agreed_views = [torch.nn.Parameter(view) for view in layout.views(self.agreed)]
        self.optimizer = outer(self._agreed_views)
        self.work = None
        self.received = False  # `moved` is the ranks' mean, to be applied

    def take_agreed(self):
        for local, agreed in zip(self.local, self._agreed_views):
            agreed.copy_(local)

    def measure(self):
        for local, agreed, moved in zip(self.local, self._agreed_views, self._moved_views):
            moved.copy_(agreed).sub_(local)

    def apply(self, mix):
        for agreed, moved in zip(self._agreed_views, self._moved_views):
            agreed.grad = moved
        self.optimizer.step()
        self.received = False
        self.go_to_agreed(mix)

    def go_to_agreed(self, mix):
        for local, agreed in zip(self.local, self._agreed_views):
            if mix == 0:
                local.copy_(agreed)
            else:
                local.lerp_(agreed.to(local.dtype), 1 - mix)


class DiLoCo(OnGroup):
    """Every `every` inner steps the ranks average how far they have moved, and an outer optimizer steps by that.

        with DiLoCo(model, inner=opt, outer=lambda ps: torch.optim.SGD(ps, lr=.7, momentum=.9, nesterov=True), every=100,
                    delivery=leeway.bounded(0.01, "30s"), codec="nvfp4"):
            for batch in loader: train_step(batch)            # calls opt.step()

    As a context it counts inner.step() by itself, and ends with synchronize(); else call step() after each inner step.
    model: a Module or parameters, of any real floating types in host memory. All ranks begin with rank 0's values.
    inner: the optimizer of the model's parameters; every rank has its own.
    outer: gets float32 parameters and returns the optimizer for them; every rank runs the same steps on the same bits.
    every: inner steps between two outer ones.
    delivery: leeway.exact(), bounded() or best_effort(), of the contributions. The mean travels back exactly, so all ranks
        stay bitwise equal. None: exact.
    codec: how contributions and mean travel: "native", "nvfp4", "fp8_e4m3_block", ...
    fragments: number of parts, of about equal size, into which the parameters are cut. Their outer steps are evenly spaced.
    delay: inner steps for which a fragment's mean is on its way while training goes on; below `every`.
    mix: share of its own parameters that a rank keeps when a mean comes in, 0 to below 1. None: 0, and 0.5 where delay is
        not 0 (Streaming DiLoCo, arXiv 2501.18512).
    error_feedback: what the codec's rounding left out of a contribution is added to the next.
    process_group: its ranks take part, on any backend. None: all ranks. Or a leeway.Communicator.
    options: further fields of CollectiveOptions.

    All ranks take the same number of inner steps. In a context a step that a torch.amp.GradScaler skips counts, too. `weight`,
    which may be set at any time, is the amount of work (tokens, say) behind this rank's contributions; 0 counts for nothing.
    `reports` are the leeway.Reports of the last outer step of each fragment.
    """

    def __init__(self, model, inner, outer, *, every, delivery=None, codec="native", fragments=1, delay=0, mix=None,
                 error_feedback=False, process_group=None, **options):
        parameters = trainable(model.parameters() if isinstance(model, torch.nn.Module) else model)
        for parameter in parameters:
            if not parameter.is_floating_point():
                raise InvalidArgumentError(f"a parameter of shape {tuple(parameter.shape)} is {parameter.dtype}: only real "
                                           "floating types are averaged")
        if not isinstance(inner, torch.optim.Optimizer):
            raise InvalidArgumentError(f"inner: {inner!r} is not a torch.optim.Optimizer")
        if every < 1 or not 0 <= delay < every:
            raise InvalidArgumentError(f"every={every}, delay={delay}: every is at least 1, and delay 0 to every - 1")
        if not 1 <= fragments <= min(every, len(parameters)):
            raise InvalidArgumentError(f"fragments={fragments}: 1 to {min(every, len(parameters))}, at most one for each inner "
                                       "step and each parameter")
        if mix is None:
            mix = 0.5 if delay else 0.0
        if not 0 <= mix < 1:
            raise InvalidArgumentError(f"mix={mix} is not in 0 to below 1")
        self.every, self.delay, self.mix = every, delay, mix
        self.weight = 1.0
        self.steps = 0
        self.inner = inner
        self.reports = [None] * fragments
        if delivery is not None:
            options["delivery"] = delivery
        self._options = CollectiveOptions(**{"codec": codec, **options, "op": "avg"})
        if str(self._options.spread) != "exact":
            raise InvalidArgumentError("spread must be exact, or the ranks would no longer agree")
        self._options = repaired_later(self._options)
        with torch.no_grad():
            self._fragments = [_Fragment(part, (number + 1) * every // fragments % every, outer, error_feedback)
                               for number, part in enumerate(_in_parts(parameters, fragments))]
            self._join(process_group, "diloco")
            for fragment in self._fragments:
                fragment.take_agreed()
                self._communicator.broadcast(fragment.agreed, 0)
                fragment.go_to_agreed(0)

    def __enter__(self):
        self._hooks = [self.inner.register_step_post_hook(lambda *_: self.step())]
        if not getattr(self.inner, "_step_supports_amp_scaling", False):
            # GradScaler then calls step() in any case. If it left a step out, this rank alone would not count it.
            self.inner._step_supports_amp_scaling = True
            self._hooks.append(self.inner.register_step_pre_hook(_unscale))
        return self

    def __exit__(self, kind, error, traceback):
        for hook in self._hooks:
            hook.remove()
        if len(self._hooks) > 1:
            del self.inner._step_supports_amp_scaling
        if kind is None:
            self.synchronize()

    @torch.no_grad()
    def step(self):
        """Call it after each inner step if DiLoCo is not used as a context."""
        self.steps += 1
        for number, fragment in enumerate(self._fragments):
            if self._in_flight(fragment) and self.steps >= fragment.begun + self.delay:
                self._finish(number, self.mix)
            if self.steps % self.every == fragment.offset:
                self._begin(fragment)
                if self.delay == 0:
                    self._finish(number, self.mix)

    @torch.no_grad()
    def synchronize(self):
        """Takes an outer step for what was trained since the last one, so that all ranks have the same parameters. Call it before
        an evaluation and at the end."""
        for number, fragment in enumerate(self._fragments):
            if self._in_flight(fragment):
                self._finish(number, self.mix)
            if fragment.begun < self.steps:
                self._begin(fragment)
                self._finish(number, 0)
            else:
                fragment.go_to_agreed(0)

    def _in_flight(self, fragment):
        return fragment.work is not None or fragment.received

    def _begin(self, fragment):
        fragment.begun = self.steps
        fragment.measure()
        self._reduce(fragment, self._options)

    def _reduce(self, fragment, options):
        # An average takes the sum over a rank's units.
        fragment.moved.mul_(self.weight)
        changes = {} if fragment.residual is None else {"residual": fragment.residual}
        fragment.work = self._communicator.all_reduce_async(fragment.moved, options, weight=self.weight, **changes)

    def _finish(self, number, mix):
        self._receive(number)
        self._fragments[number].apply(mix)

    def _receive(self, number):
        """Waits for the fragment's mean, and until all ranks hold the same one."""
        fragment = self._fragments[number]
        if fragment.received:
            return
        if not self._all_have(number):
            fragment.measure()
            if fragment.residual is not None:
                fragment.residual.zero_()
            self._reduce(fragment, CollectiveOptions(op="avg"))
            self.reports[number] = fragment.work.wait()
            fragment.work = None
        fragment.received = True

    def _all_have(self, number):
        # A deadline may pass on one rank and not on another. They must then not go on from different values.
        fragment = self._fragments[number]
        mine = torch.ones(1)
        try:
            self.reports[number] = fragment.work.wait()
            mine[0] = self.reports[number].complete
        except DeadlineExceededError:
            mine[0] = 0
        finally:
            fragment.work = None
        self._communicator.all_reduce(mine, op="min")
        return mine.item() == 1

    def agreed(self):
        """All ranks call it. Returns whether the values that they agreed on are the same on all, bit by bit."""
        values = torch.tensor([zlib.crc32(fragment.agreed.numpy()) for fragment in self._fragments], dtype=torch.int64)
        both = torch.cat([values, -values])
        self._communicator.all_reduce(both, op="max")
        return bool((both[:len(values)] == -both[len(values):]).all())

    def state_dict(self):
        """All ranks call it after the same step. Returns all but what the program itself holds: agreed parameters, outer
        optimizers, and under this rank's key its parameters, its inner optimizer, and means on their way. For torch.save by
        rank, and for torch.distributed.checkpoint."""
        for number, fragment in enumerate(self._fragments):
            if fragment.work is not None:
                self._receive(number)
        # Tuples: one value each for a checkpoint.
        own = {"local": [[p.detach() for p in f.local] for f in self._fragments], "residual": [f.residual for f in self._fragments],
               "received": [f.moved if f.received else None for f in self._fragments], "inner": self.inner.state_dict(),
               "weight": self.weight}
        return {"steps": self.steps, "begun": tuple(f.begun for f in self._fragments),
                "agreed": tuple(f.agreed for f in self._fragments), "ranks": self._communicator.size,
                "outer": tuple(f.optimizer.state_dict() for f in self._fragments), f"rank{self._communicator.rank}": (own,)}

    @torch.no_grad()
    def load_state_dict(self, state_dict):
        """Goes on as saved, on as many ranks, with the same fragments. The model and the inner optimizer get their values, too."""
        own = state_dict.get(f"rank{self._communicator.rank}")
        if state_dict["ranks"] != self._communicator.size or own is None:
            raise InvalidArgumentError(f"the state is that of {state_dict['ranks']} ranks, and this is rank "
                                       f"{self._communicator.rank} of {self._communicator.size}: each rank loads its own")
        if [a.numel() for a in state_dict["agreed"]] != [f.agreed.numel() for f in self._fragments]:
            raise InvalidArgumentError("the state is that of other parameters or fragments than these")
        own = own[0]
        self.steps, self.weight = state_dict["steps"], own["weight"]
        self.inner.load_state_dict(own["inner"])
        for i, fragment in enumerate(self._fragments):
            fragment.begun = state_dict["begun"][i]
            fragment.agreed.copy_(state_dict["agreed"][i])
            fragment.optimizer.load_state_dict(state_dict["outer"][i])
            for local, saved in zip(fragment.local, own["local"][i]):
                local.copy_(saved)
            if fragment.residual is not None and own["residual"][i] is not None:
                fragment.residual.copy_(own["residual"][i])
            fragment.work, fragment.received = None, own["received"][i] is not None
            if fragment.received:
                fragment.moved.copy_(own["received"][i])


def _unscale(inner, *_):
    """Does GradScaler's work before the step of an ordinary optimizer: divides gradients, or drops all if one had an infinity."""
    if not hasattr(inner, "found_inf"):
        return
    overflowed, scale = float(inner.found_inf) > 0, inner.grad_scale
    inner.found_inf = inner.grad_scale = None  # only fused optimizers know what to do with them
    for group in inner.param_groups:
        for parameter in group["params"]:
            if overflowed:
                parameter.grad = None
            elif scale is not None and parameter.grad is not None:
                parameter.grad /= scale


def _in_parts(parameters, count):
    """Cuts the parameters into runs with about equal numbers of elements, none of them empty."""
    total = sum(p.numel() for p in parameters)
    parts, part, seen = [], [], 0
    for number, parameter in enumerate(parameters):
        part.append(parameter)
        seen += parameter.numel()
        left, parts_left = len(parameters) - number - 1, count - len(parts) - 1
        if parts_left > 0 and (seen >= total * (len(parts) + 1) / count or left == parts_left):
            parts.append(part)
            part = []
    return parts + [part]
