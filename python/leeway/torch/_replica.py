"""An optimizer whose state and work are shared out over the ranks; gradients and parameters may be lost on the way."""

import math

import torch

from .. import CollectiveOptions, InvalidArgumentError, Replica, ReplicaOptions
from ._flat import Layout, dense_gradient, trainable
from ._groups import OnGroup


class ReplicaOptimizer(OnGroup, torch.optim.Optimizer):
    """Each rank updates its shard of the parameters with an inner optimizer. So a rank holds 1/N of its state.

        opt = ReplicaOptimizer(model.parameters(), lambda ps: torch.optim.AdamW(ps, lr=3e-4), gradients=lossy,
                               parameters=leeway.ReplicaOptions(age_max=8))
        loss.backward(); opt.step(); opt.zero_grad()

    params: parameters, (name, parameter) pairs, or groups as torch.optim takes them; float32 in host memory. They become views
        of one buffer, with rank 0's values. Frozen ones stay out.
    make_inner: gets what `params` is, with the pieces of this rank's shard (one dimension each) in place of the parameters,
        and returns an optimizer that treats each element by itself: SGD, Adam, AdamW, but not Muon or LBFGS.
    gradients: a CollectiveOptions; its delivery, codec and estimator count. None: exact.
    parameters: a leeway.ReplicaOptions. None: exact, so that all ranks hold the same bits after each step.
    clip_norm: bound to which the gradient's norm over all parameters and ranks is reduced; `grad_norm` is the norm before.
    error_feedback: what the codec's rounding left out of a gradient is added to the next one.
    process_group: its ranks take part, on any backend. None: all ranks. Or a leeway.Communicator.

    Learning rate schedulers work on it as on any optimizer. All ranks construct it, and call step(), synchronize(),
    state_dict() and load_state_dict() in the same order; so does anything else that changes parameters on purpose, followed by
    parameters_changed(). `gradient_report` and `parameter_report` are the leeway.Report of the last step's two halves.
    A torch.amp.GradScaler that finds an infinity on one rank has all ranks skip that step. Its scale may differ between ranks.
    """

    # GradScaler then calls step() in any case, with what it found. A rank that skipped alone would leave the others waiting.
    _step_supports_amp_scaling = True

    def __init__(self, params, make_inner, *, gradients=None, parameters=None, clip_norm=None, error_feedback=False,
                 process_group=None):
        if gradients is not None and not isinstance(gradients, CollectiveOptions):
            raise InvalidArgumentError(f"gradients: {gradients!r} is not a leeway.CollectiveOptions")
        if clip_norm is not None and not clip_norm > 0:
            raise InvalidArgumentError(f"clip_norm: {clip_norm!r} is not above zero")
        params = list(params)
        super().__init__(params, {})
        given = [p for group in self.param_groups for p in group["params"]]
        self._layout = Layout(trainable(given))
        self._check_parameters()
        self._options = (gradients or CollectiveOptions()).replace(op="avg")
        self._clip_norm = clip_norm
        self.grad_norm = self.gradient_report = self.parameter_report = None

        self._join(process_group, "replica")
        self._flatten()
        self._gradient = self._layout.zeros()
        self._gradient_views = self._layout.views(self._gradient)
        self._residual = self._layout.zeros() if error_feedback else None
        if parameters is None:
            parameters = ReplicaOptions(delivery="exact", deadline=60.0, drift_every=0)
        self._replica = Replica(self._communicator, self._flat, parameters)
        self._begin, self._end = self._replica.owned_range
        self._owned = torch.from_numpy(self._replica.owned())
        self._make_pieces()
        self.inner = self._checked(make_inner(self._pieces_for_inner(isinstance(params[0], dict))))
        self.defaults = self.inner.defaults
        self.state = self.inner.state
        self._take_settings()

    # Construction

    def _check_parameters(self):
        for number, parameter in enumerate(self._layout.parameters):
            if parameter.dtype != torch.float32:
                raise InvalidArgumentError(
                    f"parameter {number} of shape {tuple(parameter.shape)} is {parameter.dtype}: ReplicaOptimizer keeps "
                    "parameters in float32. Use model.float(), and torch.autocast to compute in another type")
        ends = sorted((p.data_ptr(), p.data_ptr() + 4 * p.numel()) for p in self._layout.parameters if p.numel() > 0)
        if any(end > begin for (_, end), (begin, _) in zip(ends, ends[1:])):
            raise InvalidArgumentError("two parameters share memory: tie layers by giving both the same torch.nn.Parameter")

    def _flatten(self):
        self._flat = self._layout.zeros()
        self._views = self._layout.views(self._flat)
        with torch.no_grad():
            for parameter, view in zip(self._layout.parameters, self._views):
                view.copy_(parameter)
            self._communicator.broadcast(self._flat, 0)
            for parameter, view in zip(self._layout.parameters, self._views):
                parameter.data = view

    def _make_pieces(self):
        self._pieces = []  # (number of the parameter, piece, its part of the gradient)
        gradient = self._gradient[self._begin:self._end]
        for number, first, last in self._layout.pieces(self._begin, self._end):
            self._pieces.append((number, torch.nn.Parameter(self._owned[first:last]), gradient[first:last]))

    def _pieces_for_inner(self, grouped):
        piece_of = {id(self._layout.parameters[number]): piece for number, piece, _ in self._pieces}
        pieces = [[piece_of[id(p)] for p in group["params"] if id(p) in piece_of] for group in self.param_groups]
        if grouped:
            return [{**_settings(group), "params": of_group} for group, of_group in zip(self.param_groups, pieces)]
        # torch's optimizers refuse an empty list; a rank may own nothing of a small model.
        return pieces[0] or [torch.nn.Parameter(torch.empty(0))]

    def _checked(self, inner):
        if not isinstance(inner, torch.optim.Optimizer):
            raise InvalidArgumentError(f"make_inner returned {type(inner).__name__}, not a torch.optim.Optimizer")
        if len(inner.param_groups) != len(self.param_groups):
            raise InvalidArgumentError(f"make_inner returned an optimizer with {len(inner.param_groups)} groups of parameters for "
                                       f"{len(self.param_groups)}: give it what it was called with")
        held = {id(p) for group in inner.param_groups for p in group["params"]}
        if not {id(piece) for _, piece, _ in self._pieces} <= held:
            raise InvalidArgumentError("make_inner returned an optimizer of other parameters: give it what it was called with")
        return inner

    def add_param_group(self, param_group):
        if hasattr(self, "inner"):
            raise InvalidArgumentError("the parameters of a ReplicaOptimizer are laid out once: construct it with all of them")
        super().add_param_group(param_group)

    # Steps

    @torch.no_grad()
    def step(self, closure=None, *, weight=1.0):
        """Reduces the gradients, updates this rank's shard, and sends it to all. Returns what closure() does.

        weight: units of work (micro-batches, say) whose gradients each parameter's .grad is the sum of; the step takes the mean
        per unit over all ranks. 0: this rank has done nothing, and takes part.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._overflowed():
            return loss
        self._collect_gradients()
        changes = {} if self._residual is None else {"residual": self._residual}
        self.gradient_report = self._replica.reduce_gradients(self._gradient, self._options, weight=weight, **changes)
        self._clip()
        self._step_inner()
        self.parameter_report = self._replica.broadcast_parameters()
        return loss

    def _collect_gradients(self):
        for parameter, view, gradient in zip(self._layout.parameters, self._views, self._gradient_views):
            if parameter.data_ptr() != view.data_ptr():
                raise InvalidArgumentError(f"a parameter of shape {tuple(parameter.shape)} has moved out of the optimizer's "
                                           "buffer: construct ReplicaOptimizer after .to(), and load with assign=False")
            held = dense_gradient(parameter)
            if held is None:
                gradient.zero_()
            else:
                gradient.copy_(held)
        scale = getattr(self, "grad_scale", None)  # of a GradScaler; None: it has divided already
        if scale is not None:
            self._gradient /= scale

    def _overflowed(self):
        """Returns whether a GradScaler found an infinity or a NaN on any rank."""
        if not hasattr(self, "found_inf"):
            return False
        found = torch.tensor([float(self.found_inf)])
        self._communicator.all_reduce(found, op="max")
        return found.item() > 0

    def _clip(self):
        if self._clip_norm is None:
            return
        square = self._gradient[self._begin:self._end].double().square().sum().reshape(1)
        self._communicator.all_reduce(square)
        self.grad_norm = math.sqrt(square.item())
        scale = self._clip_norm / (self.grad_norm + 1e-6)
        if not scale >= 1:  # also for NaN, as torch.nn.utils.clip_grad_norm_ does
            self._gradient[self._begin:self._end] *= scale

    def _step_inner(self):
        self._give_settings()
        for number, piece, gradient in self._pieces:
            # As without Leeway, a parameter that no rank used takes no step.
            unused = self._layout.parameters[number].grad is None and not gradient.any()
            piece.grad = None if unused else gradient
        self.inner.step()
        self._take_settings()

    # Schedulers write to this object's groups; the inner optimizer reads its own.
    def _give_settings(self):
        for group, inner in zip(self.param_groups, self.inner.param_groups):
            inner.update(_settings(group))

    def _take_settings(self):
        for group, inner in zip(self.param_groups, self.inner.param_groups):
            group.update(_settings(inner))

    # Between steps

    def synchronize(self):
        """Gives all ranks the owners' values, bit by bit. Call it before evaluations. Returns a leeway.Report."""
        return self._replica.synchronize()

    @torch.no_grad()
    def parameters_changed(self):
        """Call it after all ranks changed parameters by hand in the same way. The optimizer goes on from them, synchronized."""
        self._owned.copy_(self._flat[self._begin:self._end])
        return self.synchronize()

    def drift(self):
        """Returns a leeway.DriftReport: how far the ranks' parameters are apart, measured and predicted."""
        return self._replica.drift()

    @property
    def owned_range(self):
        """Begin and end of this rank's shard, in elements of all parameters one after the other, each padded to 16."""
        return self._begin, self._end

    def state_dict(self):
        """Synchronizes, then returns what this rank needs to go on, under keys of its own: for torch.save by rank, and for
        torch.distributed.checkpoint. Tensors of it are the optimizer's own until they are saved."""
        self.synchronize()
        self._give_settings()
        own = {"owned": self._owned, "optimizer": (self.inner.state_dict(),)}  # a tuple: one value for a checkpoint
        if self._residual is not None:
            own["residual"] = self._residual
        return {"ranks": self._communicator.size, "elements": self._layout.elements, f"rank{self._communicator.rank}": own}

    @torch.no_grad()
    def load_state_dict(self, state_dict):
        """Parameters and optimizer go on as they were when saved, on as many ranks. All ranks call it."""
        ranks, elements = state_dict["ranks"], state_dict["elements"]
        if ranks != self._communicator.size:
            raise InvalidArgumentError(f"the state is that of {ranks} ranks, and there are {self._communicator.size}: resume on as "
                                       "many, or begin with the model's parameters alone")
        if elements != self._layout.elements:
            raise InvalidArgumentError(f"the state is that of {elements} elements, and these parameters have "
                                       f"{self._layout.elements}: it is another model's")
        own = state_dict.get(f"rank{self._communicator.rank}")
        if own is None:
            raise InvalidArgumentError(f"the state is not that of rank {self._communicator.rank}: each rank saves its own")
        self.inner.load_state_dict(own["optimizer"][0])
        self.state = self.inner.state
        self._owned.copy_(own["owned"])
        if self._residual is not None and "residual" in own:
            self._residual.copy_(own["residual"])
        self._take_settings()
        self.synchronize()


def _settings(group):
    return {key: value for key, value in group.items() if key not in ("params", "param_names")}
