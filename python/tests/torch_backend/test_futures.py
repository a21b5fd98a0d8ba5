"""Futures of calls, of the backend and of what stands on communicators: a user's continuation may do what any code may."""

import pytest

BACKEND = """
    from datetime import timedelta
    group = dist.new_group(backend="leeway", timeout=timedelta(seconds=10))
    def begin(tensor):
        work = dist.all_reduce(tensor, group=group, async_op=True)
        return work, work.get_future()
"""
COMMUNICATOR = """
    from leeway.torch._futures import future_of
    from leeway.torch._groups import communicator_of
    comm = communicator_of()
    def begin(tensor):
        work = comm.all_reduce_async(tensor, delivery=leeway.exact("10s"))
        return work, future_of(work, [tensor])
"""


@pytest.mark.parametrize("calls", [BACKEND, COMMUNICATOR], ids=["backend", "communicator"])
def test_a_continuation_may_wait_for_another_call(forked, calls):
    output, status = forked(calls + """
    import threading, time
    def threads():
        return len(os.listdir("/proc/self/task"))
    before = threads()
    # Deeper than threads are kept for. Rank 1 is late at each step, so that the calls are in flight.
    def deeper(depth):
        def after(done):
            if depth == 0:
                return done.value()[0]
            return begin(done.value()[0])[1].then(deeper(depth - 1)).wait()
        return after
    for step in range(3):
        time.sleep(0.05 * rank)
        begun = time.monotonic()
        result = begin(torch.ones(1000))[1].then(deeper(5)).wait()
        assert (result == size ** 6).all() and time.monotonic() - begun < 5, (result[0], time.monotonic() - begun)
    # A continuation that waits for what the program does next holds up no other.
    released = threading.Event()
    # Rank 0 has it before the call can be done: torch runs one that comes later on the caller's thread.
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        held = begin(torch.ones(4))[1].then(lambda done: released.wait(5))
        store.set("has a continuation", "1")
    else:
        store.wait(["has a continuation"])
        held = begin(torch.ones(4))[1]
    assert (begin(torch.ones(4))[1].then(lambda done: done.value()[0]).wait() == size).all()
    released.set()
    assert held.wait()
    until = time.monotonic() + 5
    while threads() > before + 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() <= before + 2, (before, threads())
    print("waited")
    """, timeout=150)
    assert status == 0 and output.count("waited") == 2, output


def test_a_future_is_done_when_wait_returns(forked):
    output, status = forked(BACKEND + """
    seen = []
    for number in range(200):
        work, future = begin(torch.ones(3))
        future.add_done_callback(lambda done: seen.append(done.value()))
        if number % 2:
            work.wait()
        else:
            while not work.is_completed():
                pass
        assert future.done() and (future.value()[0] == size).all()
    print("done")
    """, timeout=150)
    assert status == 0 and output.count("done") == 2, output
