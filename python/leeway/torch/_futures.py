"""Runs what follows the end of a call, and makes torch.futures.Future of calls. The library wakes a thread by an eventfd."""

import contextlib
import itertools
import os
import select
import threading

import torch.futures

from .. import _core

# Threads that stay when nothing is to do: one that waits for the next call's end, and the one that served the last.
_IDLE_MAX = 2


class _Completer:
    """Threads that wait for ends of calls and run users' continuations. A continuation may wait for another call's future. So
    before a thread runs one, another thread takes over the waiting; it is started if none is idle."""

    def __init__(self):
        self._completions = _core._Completions()
        self._waiting = {}
        self._ended = []  # numbers of calls that have ended and wait to be served
        self._numbers = itertools.count()
        self._turn = threading.Lock()  # held by the thread that waits for the next end
        self._idle, self._counting = 0, threading.Lock()
        self._ready = select.poll()
        self._ready.register(self._completions.fileno(), select.POLLIN)
        self._begin()

    def add(self, work, act):
        number = next(self._numbers)
        self._waiting[number] = (work, act)
        work._tell(self._completions, number)

    def _begin(self):
        threading.Thread(target=self._run, name="leeway futures", daemon=True).start()
        self._idle += 1

    def _next(self):
        with self._turn:
            while not self._ended:
                self._ready.poll()
                self._ended = self._completions.take()
            with self._counting:
                self._idle -= 1
                if self._idle == 0:
                    with contextlib.suppress(RuntimeError):  # no more threads can be started: this one comes back
                        self._begin()
            return self._waiting.pop(self._ended.pop(0))

    def _run(self):
        while True:
            _complete(*self._next())
            with self._counting:
                if self._idle == _IDLE_MAX:
                    return
                self._idle += 1


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
    """Calls act(report, None), or act(None, error), on a thread of the completer, or here if `work` is done already."""
    if work.done():
        _complete(work, act)
    else:
        (_completer or _the_completer()).add(work, act)


def future_of(work, value=None, on_report=None):
    """Returns a torch.futures.Future that holds `value` once `work` is done. Its wait() raises the call's error.

    on_report(report), if given, runs before the future is done. It and the future's callbacks run as in when_done().
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
