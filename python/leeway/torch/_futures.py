"""What happens when calls end, and torch.futures.Future for them. One thread a process does it; the library wakes it by an eventfd."""

import itertools
import os
import select
import threading

import torch.futures

from .. import _core


class _Completer:
    def __init__(self):
        self._completions = _core._Completions()
        self._waiting = {}
        self._numbers = itertools.count()
        threading.Thread(target=self._run, name="leeway futures", daemon=True).start()

    def add(self, work, act):
        number = next(self._numbers)
        self._waiting[number] = (work, act)
        work._tell(self._completions, number)

    def _run(self):
        ready = select.poll()
        ready.register(self._completions.fileno(), select.POLLIN)
        while True:
            ready.poll()
            for number in self._completions.take():
                _complete(*self._waiting.pop(number))


_completer = None
_creating = threading.Lock()
_abandoned = []


def _after_fork():
    # The thread is not in the child, and locks of its objects may be held for ever: never touch them again.
    global _completer, _creating
    _abandoned.append(_completer)
    _completer = None
    _creating = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _the_completer():
    global _completer
    if _completer is None:
        with _creating:
            if _completer is None:
                _completer = _Completer()
    return _completer


def _complete(work, act):
    try:
        report = work.wait()
    except Exception as error:
        act(None, error)
    else:
        act(report, None)


def when_done(work, act):
    """act(report, None), or act(None, what the call failed with), on one thread of the process; here if `work` is done already."""
    if work.done():
        _complete(work, act)
    else:
        (_completer or _the_completer()).add(work, act)


def future_of(work, value=None, on_report=None):
    """A torch.futures.Future that holds `value` once `work` is done; wait() raises what the call failed with.

    on_report(report), where given, runs before the future is done. It and the future's callbacks run as in when_done().
    """
    future = torch.futures.Future()

    def act(report, error):
        try:
            if error is not None:
                raise error
            if on_report is not None:
                on_report(report)
        except Exception as raised:
            future.set_exception(raised)
        else:
            future.set_result(value)

    when_done(work, act)
    return future
