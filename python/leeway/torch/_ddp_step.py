"""A backward pass of DistributedDataParallel: its buckets' calls, what ranks lack at its end, its report."""

import dataclasses
import threading
import time

import torch

from .. import CollectiveOptions
from ._futures import when_done

_WHOLE = CollectiveOptions()  # exact


@dataclasses.dataclass(frozen=True)
class StepReport:
    """Outcome of the calls for the buckets of one backward pass, as this rank saw it."""

    step: int  # from 0
    buckets: int
    loss: float  # part of the packets missing, mean over elements
    contributors: float  # ranks in an element's average, mean over the elements that this rank owned
    late: int  # packets that came after their bucket had settled
    seconds: float  # from the first bucket's call to the last one's end
    bytes_sent: int
    deadline_cut: int  # buckets that the deadline ended
    elements_missing: int  # elements of results that did not come from their owners in time
    repaired: int  # buckets that some rank lacked in part, so that all took one rank's; 0 without keep_equal


class _All:
    """Counts calls under way. Calls act(error) once, when every added call has ended and end() was called once more."""

    def __init__(self, act):
        self._act, self._open, self._error, self._lock = act, 1, None, threading.Lock()

    def add(self):
        with self._lock:
            self._open += 1

    def end(self, error=None):
        with self._lock:
            self._error = self._error or error
            self._open -= 1
            last = self._open == 0
        if last:
            self._act(self._error)


class _Bucket:
    __slots__ = "step", "gradient", "result", "after", "elements", "report"

    def __init__(self, step, gradient, result, after):
        self.step, self.gradient, self.result, self.after = step, gradient, result, after
        self.elements = gradient.numel()

    def ended(self, report, error):
        self.report = report
        self.step.all.end(error)

    def value(self, ended):
        """Returns what DDP gets when the step has ended."""
        gradient = self.gradient
        # Only the report is used later.
        self.step = self.gradient = self.result = self.after = None
        ended.value()
        return gradient


class Step:
    """One backward pass: add() its buckets, then close(). Their futures are done together, when the ranks have agreed."""

    def __init__(self, number, communicator, keep_equal):
        self.number, self.begun, self.ended, self.done = number, time.perf_counter(), None, False
        self._communicator, self._keep_equal = communicator, keep_equal and communicator.size > 1
        self._buckets, self._lossy, self._repaired = [], False, 0
        self.all = _All(self._agree)  # of its calls
        self._end = torch.futures.Future()
        self._over = threading.Event()

    def add(self, work, gradient, result, lossy, after=None):
        """Returns the future of a bucket whose call is in flight on `result`. after() is called when the result is final."""
        bucket = _Bucket(self, gradient, result, after)
        self._buckets.append(bucket)
        self._lossy |= lossy
        self.all.add()
        when_done(work, bucket.ended)
        # DDP reads the future in C++, where a failed future that Python made has the exception as its value. then() makes one
        # that fails there, too.
        return self._end.then(bucket.value)

    def close(self):
        self.all.end()
        # At the end of backward() DDP waits for futures and ignores Ctrl-C. A callback queued here waits before that.
        if torch._C._current_graph_task_id() != -1:
            torch.autograd.Variable._execution_engine.queue_callback(self._over.wait)

    def _agree(self, error):
        if error is not None or not self._lossy or not self._keep_equal:
            return self._finish(error)
        missing = torch.tensor([0 if bucket.report.complete else max(bucket.report.elements_missing, 1) for bucket in self._buckets])
        table = torch.empty(self._communicator.size, len(self._buckets), dtype=torch.int64)
        try:
            work = self._communicator.all_gather_async(missing, table, _WHOLE)
        except Exception as error:
            self._finish(error)
        else:
            when_done(work, lambda _, error: self._repair(table, error))

    def _repair(self, table, error):
        short = [] if error is not None else table.any(0).nonzero().flatten().tolist()
        self._repaired = len(short)
        repairs = _All(self._finish)
        for place in short:
            # All ranks have the same table, and so take the same rank's result.
            result, root = self._buckets[place].result, int(table[:, place].argmin())
            repairs.add()
            try:
                work = self._communicator.broadcast_async(result, root, _WHOLE)
            except Exception as raised:
                repairs.end(raised)
            else:
                when_done(work, lambda _, error: repairs.end(error))
        repairs.end(error)

    def _finish(self, error):
        for bucket in self._buckets:
            if error is None and bucket.after is not None:
                bucket.after()
        self.ended = time.perf_counter()
        self.done = error is None
        if error is None:
            self._end.set_result(None)
        else:
            self._end.set_exception(error)
        self._over.set()

    def report(self):
        elements = sum(bucket.elements for bucket in self._buckets)

        def mean(of):
            return sum(of(bucket.report) * bucket.elements for bucket in self._buckets) / max(elements, 1)

        reports, size = [bucket.report for bucket in self._buckets], self._communicator.size
        return StepReport(
            step=self.number, buckets=len(reports), loss=mean(lambda report: report.loss),
            contributors=mean(lambda report: report.contributors.mean if report.contributors.histogram else size),
            late=sum(peer.late for report in reports for peer in report.peers), seconds=self.ended - self.begun,
            bytes_sent=sum(report.bytes_sent for report in reports), deadline_cut=sum(report.deadline_cut for report in reports),
            elements_missing=sum(report.elements_missing for report in reports), repaired=self._repaired)
