"""`await work`: the event loop's selector watches an eventfd on which the library writes when a call ends."""

import itertools
import weakref

_watchers = weakref.WeakKeyDictionary()  # by event loop


class _Watcher:
    def __init__(self, loop):
        from . import _core

        self._completions = _core._Completions()
        self._waiting = {}
        self._numbers = itertools.count()
        loop.add_reader(self._completions.fileno(), self._on_ready)

    def _on_ready(self):
        for number in self._completions.take():
            future = self._waiting.pop(number)
            if not future.done():
                future.set_result(None)

    def future_of(self, loop, work):
        number = next(self._numbers)
        future = self._waiting[number] = loop.create_future()
        work._tell(self._completions, number)
        return future


def wait_in_loop(work):
    """Suspends the task until the call is done. Returns the call's Report, or raises its error."""
    import asyncio

    if not work.done():
        loop = asyncio.get_running_loop()
        if loop not in _watchers:
            _watchers[loop] = _Watcher(loop)
        yield from _watchers[loop].future_of(loop, work).__await__()
    return work.wait()
