import array
import asyncio
import ctypes
import gc
import mmap
import multiprocessing
import re
import signal
import time
import weakref

import numpy as np
import pytest

import leeway

MEET = """
    import os, leeway, numpy as np
    comm = leeway.Communicator.create(store=leeway.FileRendezvous(os.environ["MEETING"]), join_timeout="20s")
"""


def test_all_reduce_in_place_of_any_shape(group):
    def call(comm):
        tensor = np.full((3, 5, 7), comm.rank + 1.0, np.float32)
        report = comm.all_reduce(tensor)
        return tensor, report

    for tensor, report in group(3).run(call):
        assert (tensor == 6).all()
        assert report.loss == 0 and report.complete and report.contributors.min == 3
        assert [peer.arrived == peer.expected for peer in report.peers] == [True, True]


def test_output_leaves_the_input_alone(group):
    def call(comm):
        tensor, output = np.arange(10.0), np.zeros(10)
        comm.all_reduce(tensor, output=output, op="max")
        return (tensor == np.arange(10.0)).all() and (output == tensor).all()

    assert group(2).run(call) == [True, True]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint32",
                                   "uint64"])
def test_types(group, dtype):
    def call(comm):
        tensor = np.full(33, comm.rank + 2, dtype)
        comm.all_reduce(tensor, op="prod")
        return tensor

    for tensor in group(2).run(call):
        assert (tensor == 6).all()


@pytest.mark.parametrize("make", [
    lambda: (ctypes.c_float * 32)(*[2] * 32),
    lambda: ((ctypes.c_float * 8) * 4)(*[(ctypes.c_float * 8)(*[2] * 8)] * 4),
    lambda: ctypes.c_float(2),
    lambda: (ctypes.c_long * 5)(*[2] * 5),
    lambda: (ctypes.c_uint32 * 5)(*[2] * 5),
    lambda: (ctypes.c_float * 0)(),
    lambda: multiprocessing.RawArray("d", [2] * 7),
    lambda: memoryview((ctypes.c_double * 3)(*[2] * 3)),
    lambda: array.array("f", [2] * 9),
], ids=["1-D", "2-D", "0-D", "long", "uint32", "empty", "RawArray", "memoryview", "array"])
def test_buffers_of_ctypes_and_others(group, make):
    def call(comm):
        given, output = make(), make()
        comm.all_reduce(given)
        comm.all_reduce(given, output=output)
        return np.asarray(given).tolist(), np.asarray(output).tolist(), np.asarray(make()).tolist()

    for given, output, two in group(2).run(call):
        assert given == (np.asarray(two) * 2).tolist() and output == (np.asarray(two) * 4).tolist()


def test_what_is_not_finite_counts_as_missing(group):
    def call(comm):
        tensor = np.full(1000, comm.rank + 1.0, np.float32)
        if comm.rank == 1:
            tensor[0] = np.inf
        kept = tensor.copy()
        lossy = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("5s"))
        report = comm.all_reduce(tensor, options=lossy)
        comm.all_reduce(kept, options=lossy, keep_non_finite=True)
        return tensor[0], kept[0], report.non_finite

    assert group(2).run(call) == [(1.0, np.inf, 1), (1.0, np.inf, 0)]


def test_variance_is_in_the_squared_unit_of_the_elements(group):
    def variance(factor):
        def call(comm):
            tensor = np.random.default_rng(comm.rank).standard_normal(50_000).astype(np.float32) * factor
            report = comm.all_reduce(tensor, op="avg", delivery=leeway.best_effort("5s"))
            assert report.noise.measured and report.variance_estimate == report.noise.loss_variance
            return report.variance_estimate

        return sum(group(2, faults="loss=0.2,seed=5", seed=9).run(call))

    assert variance(1) > 0
    assert 0.99e4 < variance(100) / variance(1) < 1.01e4


def test_booleans_and_typed_views(group):
    def call(comm):
        flags = np.array([comm.rank == 0, False, True])
        comm.all_reduce(flags, op="bor")
        halves = np.full(4, 0x3F80, np.uint16)  # bfloat16 one
        comm.all_reduce(leeway.typed(halves, "bfloat16"))
        return flags.tolist(), halves.tolist()

    assert group(2).run(call) == [([True, False, True], [0x4000] * 4)] * 2


def test_every_collective(group):
    def call(comm):
        rank, size = comm.rank, comm.size
        one = np.full(4, rank, np.float32)
        gathered = np.empty(4 * size, np.float32)
        comm.all_gather(one, gathered)
        assert (gathered == np.repeat(np.arange(size), 4)).all()

        shard = np.empty(4, np.float32)
        comm.reduce_scatter(gathered, shard)
        assert (shard == rank * size).all()

        whole = np.full(5, rank, np.int64)
        comm.broadcast(whole, 1)
        assert (whole == 1).all()

        total = np.zeros(4, np.float32) if rank == 2 else None
        comm.reduce(one, total, 2)
        assert total is None or (total == 3).all()

        rows = np.zeros((size, 4), np.float32) if rank == 0 else None
        comm.gather(one, rows, 0)
        assert rows is None or (rows == np.arange(size)[:, None]).all()

        mine = np.zeros(4, np.float32)
        comm.scatter(rows, mine, 0)
        assert (mine == rank).all()

        blocks, turned = np.arange(size, dtype=np.int32) + 10 * rank, np.empty(size, np.int32)
        comm.all_to_all(blocks, turned)
        assert (turned == 10 * np.arange(size) + rank).all()

        counts = [1, 2, 3]
        uneven = np.empty(6, np.float32)
        comm.all_gather(np.full(counts[rank], rank, np.float32), uneven, counts=counts)
        assert uneven.tolist() == [0, 1, 1, 2, 2, 2]

        comm.barrier()
        return True

    assert group(3).run(call) == [True] * 3


def test_messages(group):
    def call(comm):
        if comm.rank == 0:
            comm.send(np.arange(6.0), 1, tag=7)
            return comm.send_async(np.zeros(0), 1).wait().messages[0].count
        tensor = np.zeros(10)
        report = comm.recv(tensor, None, tag=7)
        comm.recv(np.zeros(0), 0)
        message = report.messages[0]
        return message.source, message.count, message.tag, tensor[:6].tolist()

    assert group(2).run(call) == [0, (0, 6, 7, [0, 1, 2, 3, 4, 5])]


def test_exchange_is_one_call(group):
    def call(comm):
        peer = 1 - comm.rank
        theirs = np.zeros(3, np.float32)
        report = comm.exchange([("recv", theirs, peer), ("send", np.full(3, comm.rank, np.float32), peer)])
        return len(report.messages), theirs.tolist()

    assert group(2).run(call) == [(2, [1, 1, 1]), (2, [0, 0, 0])]


def test_lossy_average_with_weights(group):
    """Weights 1 and 3, loss 20 %: each element is the mean of what came, the report says how much."""
    pair = group(2, faults="loss=0.2,seed=5", seed=9)
    options = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("5s"))

    def call(comm):
        weight = 1 + 2 * comm.rank
        gradient = np.full(200_000, weight * (comm.rank + 1.0), np.float32)  # the sum over its units
        report = comm.all_reduce(gradient, options, weight=weight)
        return gradient, report

    (first, report), (second, _) = pair.run(call)
    assert (first == second).all()
    assert set(np.unique(first)) <= {np.float32(1), np.float32(1.75), np.float32(2)}
    assert 0.05 < report.loss < 0.2 and report.loss_first_pass >= report.loss
    assert "loss=" in repr(report)


def test_error_feedback_and_control_variate_stay_the_callers_arrays(group):
    def call(comm):
        residual = np.zeros(20000, np.float32)  # more than one datagram, so both ranks own a part
        gradient = np.full(20000, 0.3, np.float32)
        comm.all_reduce(gradient, codec="nvfp4:nearest", residual=residual)
        guess = np.full(20000, 0.6, np.float32)
        comm.all_reduce(gradient, delivery=leeway.best_effort("1s"), estimator="augmented", control_variate=guess)
        return float(abs(residual).max())

    assert all(0 < left < 0.1 for left in group(2).run(call))


def test_asynchronous_calls_overlap_and_keep_their_arrays(group):
    def call(comm):
        works = []
        for i in range(20):
            works.append(comm.all_reduce_async(np.full(1000, i, np.float32)))
            gc.collect()
        dropped = np.ones(50_000, np.float32)
        comm.all_reduce_async(dropped)  # nobody waits for it
        reports = [work.wait("10s") for work in works]
        until = time.monotonic() + 10
        while dropped[0] != 2 and time.monotonic() < until:
            time.sleep(0.001)
        return len(reports), dropped[0], all(work.done() for work in works)

    assert group(2).run(call) == [(20, 2, True)] * 2


MOVABLE = {
    "bytearray": lambda: (lambda memory: (memory, memory.clear))(bytearray(1 << 16)),
    "array": lambda: (lambda memory: (memory, lambda: memory.extend(memory)))(array.array("f", bytes(1 << 16))),
    "mmap": lambda: (lambda memory: (memory, memory.close))(mmap.mmap(-1, 1 << 16)),
    "memoryview": lambda: (lambda memory: (memoryview(memory), memory.clear))(bytearray(1 << 16)),
}


@pytest.mark.parametrize("made", MOVABLE.values(), ids=MOVABLE.keys())
def test_memory_of_a_call_in_flight_cannot_be_moved(group, made):
    pair = group(2)
    memory, move = made()
    works = [pair.communicators[0].all_reduce_async(memory), pair.communicators[0].send_async(memory, 1)]
    with pytest.raises(BufferError):
        move()
    other = bytearray(1 << 16)
    like = memoryview(other).cast("f") if isinstance(memory, array.array) else other
    pair.communicators[1].all_reduce(like)
    pair.communicators[1].recv(like, 0)
    for work in works:
        work.wait("20s")
    if isinstance(memory, memoryview):
        memory.release()
    move()


def test_arrays_are_let_go_when_their_calls_are_done(group):
    def call(comm):
        kept, dropped, cyclic = (np.zeros(1000, np.float32).view(type("Array", (np.ndarray,), {})) for _ in range(3))
        alive = [weakref.ref(array) for array in (kept, dropped, cyclic)]
        work = comm.all_reduce_async(kept)
        comm.all_reduce_async(dropped)
        cyclic.work = comm.all_reduce_async(cyclic)
        comm.barrier()
        until = time.monotonic() + 10
        while not work.done() and time.monotonic() < until:
            time.sleep(0.001)
        del kept, dropped, cyclic
        return alive

    alive = sum(group(2).run(call), [])
    until = time.monotonic() + 10
    while any(one() is not None for one in alive) and time.monotonic() < until:
        gc.collect()
    assert [one() for one in alive] == [None] * 6


def test_await_in_asyncio(group):
    def call(comm):
        async def steps():
            tensors = [np.full(100, i, np.float32) for i in range(8)]
            reports = await asyncio.gather(*(wait(comm.all_reduce_async(tensor)) for tensor in tensors))
            return [tensor[0] for tensor in tensors], len(reports)

        async def wait(work):
            return await work

        return asyncio.run(steps())

    assert group(2).run(call) == [([0, 2, 4, 6, 8, 10, 12, 14], 8)] * 2


def test_awaiting_what_fails_raises(group):
    def call(comm):
        async def step():
            if comm.rank == 0:
                await comm.all_reduce_async(np.zeros(4), delivery=leeway.exact("100ms"))

        asyncio.run(step())

    error, nothing = group(2).errors(call)
    assert isinstance(error, leeway.DeadlineExceededError) and nothing is None


def test_a_wait_with_a_timeout_goes_on(group):
    pair = group(2)
    tensor = np.ones(10, np.float32)
    work = pair.communicators[0].all_reduce_async(tensor)
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match="goes on"):
        work.wait("50ms")
    assert 0.04 < time.monotonic() - begun < 5
    assert not work.done()
    pair.communicators[1].all_reduce(np.ones(10, np.float32))
    assert work.wait(10).complete and tensor[0] == 2


def test_split_shrink_and_abort(group):
    def call(comm):
        odd = comm.split(comm.rank % 2, -comm.rank)
        assert (odd.rank, odd.size) == (1 - comm.rank // 2, 2)
        assert comm.split(None) is None
        tensor = np.full(3, comm.rank, np.float32)
        odd.all_reduce(tensor)
        odd.close()
        assert tensor[0] == (2 if comm.rank % 2 == 0 else 4)
        small = comm.shrink([3]) if comm.rank != 3 else None
        if small is None:
            return None
        size = small.size
        small.abort()
        assert small.state == "cancelled"
        with pytest.raises(leeway.CancelledError):
            small.all_reduce(tensor)
        small.close()
        return size

    assert group(4).run(call) == [3, 3, 3, None]


def test_closed(group):
    comm = group(1).communicators[0]
    assert not comm.closed and comm.state == "ok"
    comm.close()
    comm.close()
    assert comm.closed
    with pytest.raises(leeway.InvalidArgumentError, match="closed"):
        comm.barrier()


def test_with_aborts_where_the_body_fails(group):
    pair = group(2)

    def call(comm):
        with comm:
            if comm.rank == 0:
                raise RuntimeError("mine")
            comm.all_reduce(np.zeros(4), delivery=leeway.exact("60s"))

    mine, theirs = pair.errors(call)
    assert str(mine) == "mine"
    assert isinstance(theirs, leeway.PeerLostError)


@pytest.mark.parametrize("error, does", [
    (SystemExit(0), "destroyed"), (SystemExit(None), "destroyed"), (SystemExit(False), "destroyed"),
    (SystemExit(1), "aborted"), (SystemExit("a text"), "aborted"), (KeyboardInterrupt(), "aborted"),
], ids=repr)
def test_with_left_by_a_good_exit_closes_and_does_not_abort(group, error, does):
    """Closing lets calls in flight, and peers that lack data, finish. A call that no peer joins tells the two apart."""
    comm = group(2).communicators[0]
    with pytest.raises(type(error)):
        with comm:
            work = comm.all_reduce_async(np.zeros(4))
            raise error
    assert comm.closed
    with pytest.raises(leeway.CancelledError, match=f"communicator was {does}"):
        work.wait("20s")


def test_counters_and_options(group):
    comm = group(2, seed=77).communicators[0]
    assert comm.options["seed"] == 77 and comm.options["transport"] == "auto"
    assert isinstance(comm.counters()["rounds"], int) if "rounds" in comm.counters() else comm.counters()
    assert repr(comm) == "<leeway.Communicator: rank 0 of 2 over inproc>"


def test_processes_meet_in_a_folder(start_ranks):
    ranks = start_ranks(MEET + """
    tensor = np.full(1000, comm.rank, np.float32)
    comm.all_reduce(tensor)
    print(tensor[0])
    comm.close()
    """, 3)
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["3.0\n"] * 3


def test_a_store_written_in_python(start_ranks):
    ranks = start_ranks("""
    import os, time, leeway, numpy as np

    class Store:
        def path(self, key):
            return os.path.join(os.environ["MEETING"], key.replace("/", "+"))

        def put(self, key, value):
            os.makedirs(os.environ["MEETING"], exist_ok=True)
            with open(self.path(key) + ".part", "wb") as file:
                file.write(value)
            os.rename(self.path(key) + ".part", self.path(key))

        def get(self, key, seconds):
            until = time.monotonic() + seconds
            while True:
                if os.path.exists(self.path(key)):
                    return open(self.path(key), "rb").read()
                if time.monotonic() >= until:
                    return None
                time.sleep(0.002)

    with leeway.Communicator.create(store=Store(), join_timeout=20) as comm:
        tensor = np.ones(10)
        comm.all_reduce(tensor)
        print(tensor[0])
    """, 2)
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["2.0\n"] * 2


def test_ctrl_c_ends_a_join_through_a_store_written_in_python(start_ranks):
    ranks = start_ranks("""
    import os, signal, threading, time, leeway

    class Empty:
        def put(self, key, value):
            pass

        def get(self, key, seconds):
            time.sleep(0.01)

        def forget(self, key):
            time.sleep(0.1)  # as the interrupted call is taken back

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        leeway.Communicator.create(store=Empty(), rank=0, world_size=2, join_timeout=60)
    except KeyboardInterrupt:
        print("interrupted")
    """, 1)
    assert ranks[0].communicate(timeout=30)[0] == "interrupted\n"


def test_a_store_that_raises_is_named():
    class Broken:
        def put(self, key, value):
            raise OSError("disk is full")

        def get(self, key, seconds):
            return None

    with pytest.raises(leeway.UnavailableError, match="put.*disk is full"):
        leeway.Communicator.create(rank=0, world_size=2, store=Broken(), join_timeout="300ms")


@pytest.mark.parametrize("call", ["comm.all_reduce(np.zeros(8))", "comm.all_reduce_async(np.zeros(8)).wait()",
                                  "leeway.Communicator.create(rank=0, world_size=2, rendezvous='127.0.0.1:39917')"])
def test_keyboard_interrupt_ends_a_wait(start_ranks, call):
    """Rank 1 never makes the call; Ctrl-C ends rank 0's wait at once and not after its deadline of a minute."""
    ranks = start_ranks(MEET + f"""
    import signal, time
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins without
    print("ready", flush=True)
    if comm.rank == 1:
        time.sleep(30)
    try:
        {call}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(0)
    """, 2)
    assert ranks[0].stdout.readline() == "ready\n"
    time.sleep(0.3)  # until it waits
    begun = time.monotonic()
    ranks[0].send_signal(signal.SIGINT)
    assert ranks[0].communicate(timeout=20)[0] == "interrupted\n"
    assert time.monotonic() - begun < 10


def test_a_dead_rank_is_named(start_ranks):
    ranks = start_ranks(MEET.replace('"20s"', '"20s", peer_timeout="500ms"') + """
    tensor = np.zeros(4)
    comm.barrier()
    if comm.rank == 1:
        os._exit(7)
    try:
        comm.all_reduce(tensor)
    except leeway.PeerLostError as error:
        print(error.code, "rank 1" in str(error))
    """, 2)
    assert "peer_lost True\n" in ranks[0].communicate(timeout=60)[0]  # beside a line of the log


@pytest.mark.parametrize("transport", ["auto", "udp"])
def test_a_rank_whose_program_ends_has_left(start_ranks, transport):
    ranks = start_ranks(MEET.replace('"20s"', '"20s", peer_timeout="60s"') + """
    import ctypes, sys, time
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(comm))  # as DistributedDataParallel's C++ holds a hook's state
    comm.barrier()
    if comm.rank == 1:
        sys.exit(0)
    begun = time.monotonic()
    try:
        comm.all_reduce(np.zeros(4))
    except leeway.PeerLostError as error:
        print(error, "soon" if time.monotonic() - begun < 20 else "late")
    """, 2, LEEWAY_TRANSPORT=transport)
    output = ranks[0].communicate(timeout=60)[0]
    assert re.search("rank 1 (has )?left", output) and "soon" in output and "is dead" not in output, output
    assert ranks[1].wait() == 0


@pytest.mark.parametrize("call", ["comm.recv(np.zeros(4), 1 - comm.rank, tag=5)", "comm.barrier('60s')",
                                  "comm.split(0) if comm.rank == 0 else None",
                                  "leeway.Communicator.create(rank=0, world_size=2, rendezvous='127.0.0.1:39918')"])
def test_a_program_may_end_while_its_daemon_threads_are_in_calls(start_ranks, call):
    ranks = start_ranks(MEET + f"""
    import threading, time
    def wait():
        try:
            {call}
        except leeway.Error:
            pass
    for _ in range(2):
        threading.Thread(target=wait, daemon=True).start()
    time.sleep(0.2)
    """, 2)
    assert [(rank.wait(timeout=60), rank.stdout.read().count("terminate")) for rank in ranks] == [(0, 0)] * 2


def test_a_forked_child_that_ends_leaves_its_parents_groups_alone(start_ranks):
    ranks = start_ranks(MEET + """
    import sys
    comm.barrier()
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    comm.barrier()
    print("both", flush=True)
    """, 2)
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["both\n"] * 2


def test_the_gil_is_free_while_a_call_waits(group):
    pair = group(2)
    counted = 0
    work = pair._threads.submit(lambda: pair.communicators[0].all_reduce(np.zeros(4)))
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        counted += 1
    pair.communicators[1].all_reduce(np.zeros(4))
    work.result(timeout=10)
    assert counted > 1000  # a thread that waits with the GIL leaves none of this


def test_cycles_leave_nothing(group):
    import os
    import threading

    def once():
        made = leeway.Communicator.create_inproc(2)
        threads = [threading.Thread(target=lambda comm=comm: (comm.all_reduce(np.zeros(4)), comm.close()))
                   for comm in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def resources():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    once()
    before = resources()
    for _ in range(100):
        once()
    # A thread that has ended stays in the list for a moment: also in the one of before.
    until = time.monotonic() + 5
    while any(now > then for now, then in zip(resources(), before)) and time.monotonic() < until:
        time.sleep(0.01)
    assert all(now <= then for now, then in zip(resources(), before)), (resources(), before)
