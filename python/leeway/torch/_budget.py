"""DropCompute for loaders of batches: a step ends when its time is up, with the micro-batches that it has completed."""

import collections.abc
import itertools

from .. import ComputeBudget as _Core
from .. import InvalidArgumentError
from ._groups import OnGroup

_COUNTS = ("steps", "planned", "completed", "dropped")


class _Source:
    """The batches of a loader, epoch after epoch; those of an iterator once."""

    def __init__(self, loader):
        self.loader = loader
        self.epoch = 0
        self.taken = 0  # batches of this epoch that were given out and not put back
        self._restarts = not isinstance(loader, collections.abc.Iterator)
        self._back = []
        self._batches = None

    def go_to(self, epoch, taken):
        self.epoch, self.taken = epoch, taken
        self._begin()
        for _ in itertools.islice(self._batches, taken):
            pass

    def take(self):
        """Returns the next batch. Raises StopIteration if an iterator, or an empty loader, has none."""
        if self._back:
            self.taken += 1
            return self._back.pop()
        if self._batches is None:
            self._begin()
        try:
            batch = next(self._batches)
        except StopIteration:
            if not self._restarts or self.taken == 0:
                raise
            self.epoch, self.taken = self.epoch + 1, 0
            self._begin()
            batch = next(self._batches)
        self.taken += 1
        return batch

    def put_back(self, batch):
        self._back.append(batch)
        self.taken -= 1

    def _begin(self):
        sampler = getattr(self.loader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self.epoch)
        self._batches = iter(self.loader)


class ComputeBudget(OnGroup):
    """Gives a step's micro-batches until the planned number or the time is up; each rank decides by itself.

        budget = ComputeBudget(micro_batches=16, threshold="auto")
        for step in range(steps):
            for batch in budget.step(loader):
                model(batch).mean().backward()                # gradients add up
            reducer.reduce(weight=budget.weight); opt.step(); opt.zero_grad()

    micro_batches: number planned for a step of this rank. threshold: "auto", a time (0.55, "550ms"), or None.
    compensation: "none", "extra_steps", or "requeue". With the latter two steps_due() grows by what was dropped. With requeue
        a batch that should_stop() gave up comes first in the next step.
    process_group: its ranks take part, on any backend. None: all ranks. Or a leeway.Communicator, which this object alone uses.
    options: warm_up_steps, micro_batches_min, normalisation, window_steps, ... of leeway.ComputeBudget.
    All ranks construct it, with the same options but micro_batches, and take the same steps.
    """

    def __init__(self, micro_batches, *, threshold="auto", compensation="none", process_group=None, **options):
        self._join(process_group, "budget")
        self._core = _Core(self._communicator, micro_batches, threshold=threshold, compensation=compensation, **options)
        self._compensation = compensation
        self._normalisation = options.get("normalisation", "realised_weight")
        self._source = self._resume_at = None
        self._completed = 0
        self._counted = True  # the core's count of the step is right: it ended in the core's way
        self._stopped = False  # should_stop() has ended the step
        self._before = dict.fromkeys(_COUNTS, 0)  # of all ranks, before this object was resumed

    def step(self, loader):
        """Returns the batches of one step. A loader goes on where the previous step ended, and begins its next epoch when it is
        used up. An iterator (iter(loader)) ends, and the last step ends with it.

        Batches for which no time was left have not been read, and come next. To leave the loop early gives up the batch that
        runs, so leave it before the backward pass.
        """
        if self._source is None or self._source.loader is not loader:
            self._source = _Source(loader)
            if self._resume_at is not None:
                self._source.go_to(*self._resume_at)
                self._resume_at = None
        return self._batches(self._source)

    def _batches(self, source):
        self._completed, self._counted, self._stopped = 0, True, False
        while self._core.next_micro_batch():
            try:
                batch = source.take()
            except StopIteration:
                self._end_step()
                return
            try:
                yield batch
            except GeneratorExit:
                if self._compensation == "requeue":
                    source.put_back(batch)
                self._end_step()
                raise
            self._completed += 1

    def _end_step(self):
        # The core ends a step only after all of its micro-batches, so it counts those that are asked for here as completed.
        if not self._stopped:
            self._counted = False
            while self._core.next_micro_batch():
                pass

    def should_stop(self):
        """Call it between forward and backward. True: time is up. Then leave the loop; the batch that runs does not count."""
        self._stopped = self._stopped or self._core.should_stop()
        return self._stopped

    @property
    def completed(self):
        """Number of micro-batches that the last finished step completed."""
        return self._completed

    @property
    def weight(self):
        """For reduce() and step(weight=): the units of work behind the gradient of the last finished step."""
        if self._counted or self._normalisation == "fixed_maximum":
            return self._core.weight
        return float(self._completed)

    @property
    def epoch(self):
        """How often the loader has begun again."""
        return self._source.epoch if self._source else 0

    @property
    def threshold(self):
        """The threshold in force, in seconds; infinity if there is none."""
        return self._core.threshold

    def statistics(self):
        """Returns a leeway.ComputeStatistics of the time since construction."""
        return self._core.statistics()

    def synchronize(self):
        """All ranks call it, between steps: brings the counts over all ranks up to date."""
        self._core.synchronize()

    def _counts(self):
        new = self._core.statistics().all_ranks
        return {name: self._before[name] + getattr(new, name) for name in _COUNTS}

    def steps_due(self, steps_planned):
        """Returns how many steps are left until the ranks have completed as many micro-batches as `steps_planned` steps plan.
        Steps before a resume count. The same on all ranks; exact after synchronize()."""
        counts = self._counts()
        due = steps_planned
        if self._compensation != "none" and counts["completed"] > 0:
            due += -(-steps_planned * counts["dropped"] // counts["completed"])
        done = self._before["steps"] // self._communicator.size + self._core.statistics().local.steps
        return max(due - done, 0)

    def state_dict(self):
        """All ranks call it, between steps. Returns where this rank is in its data, and what all ranks have done. The automatic
        threshold is not saved: the next run may have other machines, so it measures anew."""
        self.synchronize()
        place = self._resume_at
        if self._source is not None:
            place = (self._source.epoch, self._source.taken)
        return {"counts": self._counts(), f"rank{self._communicator.rank}": place or (0, 0)}

    def load_state_dict(self, state_dict):
        """Call it before the first step, whose loader is then read up to the place that was saved."""
        if self._source is not None:
            raise InvalidArgumentError("load_state_dict() comes before the first step")
        place = state_dict.get(f"rank{self._communicator.rank}")
        if place is None:
            raise InvalidArgumentError(f"the state is not that of rank {self._communicator.rank}: each rank saves its own")
        self._resume_at = tuple(place)
        self._before = {name: int(state_dict["counts"][name]) for name in _COUNTS}
