"""Bad input: one clear exception that says what, where and what to do."""

import array
import ast
import ctypes
import re

import numpy as np
import pytest

import leeway


@pytest.fixture
def comm(group):
    return group(1).communicators[0]


@pytest.mark.parametrize("bad, says", [
    ([1.0, 2.0], "list is no array"),
    (None, "NoneType is no array"),
    (np.zeros((4, 4), np.float32)[:, 1], "not contiguous.*ascontiguousarray"),
    (np.zeros(4, np.complex64), "complex64.*cannot travel"),
    (np.zeros(4, np.int16), "int16.*cannot travel"),
    (np.zeros(4, "U3"), "is no array"),
    (np.broadcast_to(np.float32(1), 4), "read-only"),
])
def test_arrays(comm, bad, says):
    with pytest.raises(leeway.InvalidArgumentError, match=says):
        comm.all_reduce(bad)


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_float), ("second", ctypes.c_int32)]


class Packed(ctypes.Structure):  # its buffer says that it consists of bytes, as that of a union
    _pack_ = 1
    _fields_ = [("first", ctypes.c_float), ("second", ctypes.c_int32)]


class Either(ctypes.Union):
    _fields_ = [("first", ctypes.c_float), ("second", ctypes.c_int32)]


@pytest.mark.parametrize("bad, says", [
    ((Pair * 2)(), r'Pair_Array_2 is no array of numbers; its elements have 8 bytes and the buffer format "T\{'),
    (Pair(), "Pair is no array of numbers"),
    ((Packed * 2)(), "Packed_Array_2 is no array of numbers; its elements have 8 bytes"),
    ((Either * 2)(), "Either_Array_2 is no array of numbers; its elements have 4 bytes"),
    ((ctypes.c_void_p * 2)(), "is no array of numbers"),
    ((ctypes.c_float.__ctype_be__ * 2)(), 'is no array of numbers.*">f"'),
    ((ctypes.c_int16 * 2)(), "elements of '<h' cannot travel"),
    (array.array("h", [1, 2]), "elements of 'h' cannot travel"),
    (memoryview(bytearray(8))[::2], "not contiguous"),
    (memoryview((ctypes.c_float * 4)()).toreadonly(), "read-only"),
])
def test_buffers(comm, bad, says):
    with pytest.raises(leeway.InvalidArgumentError, match=says):
        comm.all_reduce(bad)


def test_a_buffer_of_more_dimensions_than_python_reads(comm):
    kind = ctypes.c_float
    for _ in range(65):
        kind = kind * 1
    with pytest.raises(leeway.InvalidArgumentError, match="is no array of numbers"):
        comm.all_reduce(kind())


@pytest.mark.parametrize("options, says", [
    ({"op": "mean"}, "op: 'mean' is none of sum, avg"),
    ({"opp": "avg"}, "no opp; it has op, factor"),
    ({"delivery": 3}, "best_effort"),
    ({"delivery": "lossy"}, "best_effort"),
    ({"codec": "nvfp5"}, "nvfp5"),
    ({"codec": 4}, "codec: 4"),
    ({"weight": "two"}, "weight: 'two' does not fit"),
    ({"tag": -1}, "tag: -1 does not fit"),
    ({"estimator": "median"}, "median"),
    ({"control_variate": np.zeros(4)}, "control_variate: elements must be float32, not double"),
    ({"residual": np.zeros(4, np.float32)[::2]}, "residual: .*not contiguous"),
    ({"weight": 2.0}, "weight"),
])
def test_options(comm, options, says):
    with pytest.raises(leeway.InvalidArgumentError, match=says):
        comm.all_reduce(np.zeros(4, np.float32), **options)


@pytest.mark.parametrize("deadline", ["20 parsecs", "ms", "", -1, float("nan"), [3], True])
def test_times(deadline):
    with pytest.raises(leeway.InvalidArgumentError, match="is no time; give seconds"):
        leeway.best_effort(deadline)


@pytest.mark.parametrize("deadline, seconds", [("20ms", 0.02), ("1.5s", 1.5), ("2min", 120), (3, 3), (0.25, 0.25),
                                               ("250us", 0.00025), (None, float("inf"))])
def test_times_that_are(deadline, seconds):
    assert leeway.best_effort(deadline).deadline == pytest.approx(seconds)


@pytest.mark.parametrize("loss", [5, -0.01, float("nan")])
def test_losses(loss):
    with pytest.raises(leeway.InvalidArgumentError, match="loss_max is .*not a part from 0 to 1"):
        leeway.bounded(loss, "1s")


def test_ranks_and_sizes(comm):
    with pytest.raises(leeway.InvalidArgumentError, match="root: 5 is no whole number from 0 to 0"):
        comm.broadcast(np.zeros(4), 5)
    with pytest.raises(leeway.InvalidArgumentError):
        comm.all_gather(np.zeros(4), np.zeros(9))
    with pytest.raises(leeway.InvalidArgumentError, match="both"):
        comm.all_to_all(np.zeros(4), np.zeros(4), input_counts=[4])


def test_different_sizes_between_ranks_name_both(group):
    errors = group(2).errors(lambda comm: comm.all_reduce(np.zeros(4 + comm.rank)))
    assert all(isinstance(error, leeway.MismatchError) for error in errors)
    assert "4" in str(errors[0]) and "5" in str(errors[0])


def refused_budget(comm, x):
    leeway.ComputeBudget(comm, -3)


def refused_replica(comm, x):
    leeway.Replica(comm, x).reduce_gradients(x[:3])


REFUSED = {
    "an array that is none": lambda comm, x: comm.all_reduce([1.0, 2.0]),
    "no such option": lambda comm, x: comm.all_reduce(x, opp="sum"),
    "no such root": lambda comm, x: comm.broadcast(x, 7),
    "a read-only output": lambda comm, x: comm.all_gather(x, np.broadcast_to(np.float32(1), 8)),
    "counts of one side": lambda comm, x: comm.all_to_all(x, np.zeros_like(x), input_counts=[2, 2]),
    "not contiguous": lambda comm, x: comm.reduce_scatter(np.zeros((4, 4), np.float32)[:, 1], x[:2]),
    "a root that is no number": lambda comm, x: comm.broadcast(x, 0.5),
    "counts that are no numbers": lambda comm, x: comm.all_gather(x, np.zeros(8, np.float32), counts=[4.0, 4.0]),
    "a time that is none": lambda comm, x: comm.barrier("zz"),
}


REFUSED_BLOCKING = {
    "a color that is no number": lambda comm, x: comm.split("a"),
    "a color that is too large": lambda comm, x: comm.split(1 << 40),
    "a replica's gradient of another size": refused_replica,
    "a replica's gradient that is not contiguous": lambda comm, x: leeway.Replica(comm, x).reduce_gradients(x[::2]),
    "a replica's option": lambda comm, x: leeway.Replica(comm, x).reduce_gradients(x, op="mean"),
    "a compute budget": refused_budget,
    "a compute budget's threshold": lambda comm, x: leeway.ComputeBudget(comm, 3, threshold="zz"),
}


@pytest.mark.parametrize("refused", REFUSED_BLOCKING.values(), ids=REFUSED_BLOCKING.keys())
def test_a_refused_blocking_collective_counts_as_a_call_of_its_rank(group, refused):
    test_a_refused_collective_counts_as_a_call_of_its_rank(group, refused, True)


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("waits", [True, False], ids=["blocking", "async"])
def test_a_refused_collective_counts_as_a_call_of_its_rank(group, refused, waits):
    class Async:  # the same call without waiting for it
        def __init__(self, comm):
            self.comm = comm

        def __getattr__(self, name):
            return getattr(self.comm, f"{name}_async")

    def calls(comm):
        x = np.full(4, 1 + comm.rank, np.float32)
        with pytest.raises(leeway.InvalidArgumentError if comm.rank == 1 else leeway.MismatchError):
            if comm.rank == 1:
                refused(comm if waits else Async(comm), x)
            else:
                comm.all_reduce(x.copy())
        comm.all_reduce(x)
        return x.tolist()

    assert group(2).run(calls) == [[3.0] * 4] * 2


def signatures():
    """Arguments of all methods and constructors that need a communicator, by "Class.method"."""
    found = {}
    for kind in (leeway.Communicator, leeway.Replica, leeway.ComputeBudget):
        for name, method in vars(kind).items():
            if not hasattr(method, "__nb_signature__") or name.startswith("__") and name != "__init__":
                continue  # static methods make a communicator and are no call of one
            (text, *_), = method.__nb_signature__
            text = re.sub(r"\\\d+", "None", text).split(" -> ")[0]
            arguments = ast.parse(text + ": ...").body[0].args
            required = len(arguments.args) - len(arguments.defaults)
            positional = [argument.arg for argument in arguments.args[1:]]
            by_name = [argument.arg for argument in arguments.kwonlyargs]
            found[f"{kind.__name__}.{name}"] = (positional[:required - 1], positional + by_name)
    return found


SIGNATURES = signatures()
GOOD = {  # for each required argument; an argument that is new needs a value here
    "tensor": lambda comm: np.ones(4, np.float32),
    "input": lambda comm: np.ones(4, np.float32),
    "output": lambda comm: np.ones(4, np.float32),
    "gradient": lambda comm: np.ones(4, np.float32),
    "parameters": lambda comm: np.ones(4, np.float32),
    "communicator": lambda comm: comm,
    "messages": lambda comm: [],
    **{name: lambda comm: 0 for name in ("root", "peer", "color", "steps_planned")},
    "micro_batches": lambda comm: 2,
    "excluded": lambda comm: [0],
}
# These need no other rank, or are matched by something else than their number.
UNCOUNTED = re.compile(r"Communicator\.((send|recv|exchange)(_async)?|shrink)|Replica\.__init__|ComputeBudget\.steps_due")


def test_signatures_are_found():
    assert {"Communicator.all_reduce", "Communicator.split", "Communicator.exchange_async", "Communicator.barrier_async",
            "Replica.__init__", "Replica.reduce_gradients", "ComputeBudget.__init__"} <= set(SIGNATURES)
    assert SIGNATURES["Communicator.all_gather"] == (["input", "output"], ["input", "output", "options", "counts"])


@pytest.mark.parametrize("bad", [None, object()], ids=["None", "object"])
@pytest.mark.parametrize("method, argument", [(method, argument) for method, (_, arguments) in SIGNATURES.items()
                                              for argument in arguments])
def test_a_rank_stays_in_step_whatever_its_argument_is(group, method, argument, bad):
    """The argument may be refused or may be right; a TypeError would mean that the call did not count."""
    required, _ = SIGNATURES[method]
    kind, name = method.split(".")

    def bound(comm):
        if kind == "Communicator":
            return getattr(comm, name)
        if name == "__init__":
            return getattr(leeway, kind)
        made = leeway.Replica(comm, np.ones(4, np.float32)) if kind == "Replica" else leeway.ComputeBudget(comm, 2)
        return getattr(made, name)

    def calls(comm):
        x = np.full(4, 1 + comm.rank, np.float32)
        function = bound(comm)
        arguments = {name: GOOD[name](comm) for name in required} | {argument: bad}
        if "options" in SIGNATURES[method][1] and UNCOUNTED.match(method) and kind == "Communicator":
            arguments["delivery"] = leeway.exact("1ms")  # nobody sends or receives on the other side
        try:
            if comm.rank == 1:
                work = function(**arguments)
                if name.endswith("_async"):
                    work.wait()
            elif not (UNCOUNTED.match(method) or argument == "communicator"):
                comm.all_reduce(x.copy())
        except leeway.Error:
            pass
        comm.all_reduce(x)
        return x.tolist()

    assert group(2).run(calls) == [[3.0] * 4] * 2


def test_a_refused_message_counts_as_no_call(group):
    def calls(comm):
        x = np.full(4, 1 + comm.rank, np.float32)
        if comm.rank == 1:
            with pytest.raises(leeway.InvalidArgumentError):
                comm.send(x, 7)
        comm.all_reduce(x)
        return x.tolist()

    assert group(2).run(calls) == [[3.0] * 4] * 2


@pytest.mark.parametrize("message, says", [(("send", 3), "give"), (3, "give"), ((1, np.zeros(4), 0), "1 is neither"),
                                           (("send", np.zeros(4), 0, -1), "tag: -1"),
                                           (("send", np.zeros(4), "zero"), "peer: 'zero'")])
def test_exchanged_messages(comm, message, says):
    with pytest.raises(leeway.InvalidArgumentError, match=says):
        comm.exchange([message])


def test_classes_of_errors():
    assert issubclass(leeway.DeadlineExceededError, TimeoutError)
    assert issubclass(leeway.PeerLostError, ConnectionError)
    assert issubclass(leeway.MismatchError, ValueError)
    assert issubclass(leeway.UnsupportedError, NotImplementedError)
    assert leeway.CancelledError.code == "cancelled"
    assert all(issubclass(getattr(leeway, name), leeway.Error) for name in dir(leeway) if name.endswith("Error"))


def test_join(tmp_path):
    for options, says in [({"rank": 0}, "LEEWAY_WORLD_SIZE|world_size"), ({"colour": 1}, "no option colour"),
                          ({"rank": "zero"}, "rank: 'zero' does not fit"), ({"transport": "tcp"}, "tcp"),
                          ({"faults": "loss=2"}, "loss"), ({"rate": -5}, "bits a second"),
                          ({"store": object()}, "put"),
                          ({"require_sealed": True, "rank": 0, "world_size": 2, "rendezvous": "127.0.0.1:1"}, "plain")]:
        with pytest.raises(leeway.Error, match=says):
            leeway.Communicator.create(**options)
    with pytest.raises(leeway.UnavailableError, match="1"):
        leeway.Communicator.create(rank=0, world_size=2, store=leeway.FileRendezvous(str(tmp_path)),
                                   join_timeout="200ms")


def test_options_show_what_was_changed():
    assert repr(leeway.CollectiveOptions()) == "CollectiveOptions()"
    options = leeway.CollectiveOptions(op="avg", codec="mxfp4:rotate", delivery=leeway.bounded(0.1, "1s"))
    assert repr(options) == "CollectiveOptions(op='avg', delivery=bounded(0.1, 1.0), codec='mxfp4:rotate')"
    changed = options.replace(op="sum", weight=1)
    assert (options.op, changed.op, changed.codec) == ("avg", "sum", "mxfp4:rotate")
    changed.factor = 2**63
    assert changed.factor == 2**63
    changed.factor = -3
    assert changed.factor == -3
    with pytest.raises(leeway.InvalidArgumentError):
        changed.spread = "most"
