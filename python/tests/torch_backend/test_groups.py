"""What the rest of leeway.torch stands on: communicators of process groups, and futures of calls."""

import threading

import numpy
import pytest

import leeway
from leeway.torch import _futures, _groups


def test_communicators_have_the_groups_ranks_whatever_its_backend(forked):
    for backend in ("gloo", "leeway"):
        output, status = forked("""
        from leeway.torch._groups import communicator_of
        with communicator_of(purpose="test") as whole, communicator_of(purpose="test") as again:
            assert (whole.rank, whole.size, again.rank) == (rank, 3, rank)
            assert whole.options["communicator_name"].endswith("/test/0"), whole.options
            assert again.options["communicator_name"].endswith("/test/1"), again.options
            tensor = torch.ones(1000)
            whole.all_reduce(tensor)
            assert (tensor == 3).all()
        backward = dist.new_group([0, 2])
        if rank != 1:
            with communicator_of(backward, "sub") as sub:
                assert (sub.rank, sub.size) == (rank // 2, 2)
                tensor = torch.full((10,), float(rank))
                sub.all_reduce(tensor)
                assert (tensor == 2).all()
        else:
            try:
                communicator_of(backward, "sub")
            except leeway.InvalidArgumentError as error:
                assert "not in the process group" in str(error), error
            else:
                raise AssertionError("no error")
        print("fine")
        """, 3, backend)
        assert status == 0 and output.count("fine") == 3, output


def test_a_rank_that_does_not_come_is_named(forked):
    output, status = forked("""
    from leeway.torch._groups import communicator_of
    if rank == 0:
        try:
            communicator_of(purpose="test", join_timeout="300ms")
        except leeway.UnavailableError as error:
            print("says", error)
    dist.barrier()
    """)
    assert status == 0 and "says" in output and "1" in output.split("says")[1], output


def test_without_a_group_it_says_what_to_do():
    with pytest.raises(leeway.InvalidArgumentError, match="init_process_group"):
        _groups.communicator_of()
    with pytest.raises(leeway.InvalidArgumentError, match="not in the process group"):
        _groups.communicator_of(-100)
    with pytest.raises(leeway.InvalidArgumentError, match="ProcessGroup"):
        _groups.communicator_of("nccl")


def test_a_future_holds_its_value_when_the_call_is_done(group):
    two = group(2)

    def call(communicator):
        array, reports = numpy.ones(1 << 18, numpy.float32), []
        work = communicator.all_reduce_async(array)
        future = _futures.future_of(work, (array, communicator.rank), reports.append)
        value = future.then(lambda done: done.value()[0][0]).wait()
        assert future.wait()[1] == communicator.rank and value == 2
        assert reports[0].sequence == work.wait().sequence
        assert _futures.future_of(work, 3).done()  # done already: at once
        return threading.active_count()

    two.run(call)
    assert len([thread for thread in threading.enumerate() if thread.name == "leeway futures"]) <= 2


def test_a_future_of_a_failed_call_raises_its_error(group):
    two = group(2)

    def call(communicator):
        if communicator.rank == 1:
            return
        future = _futures.future_of(communicator.all_reduce_async(numpy.ones(4), delivery=leeway.exact("50ms")), 1)
        with pytest.raises(leeway.DeadlineExceededError, match="Timed out|timed out|deadline"):
            future.wait()
        # What a user's function raises is an error of the future, and the thread lives on.
        for _ in range(2):
            work = communicator.all_reduce_async(numpy.ones(4), delivery=leeway.exact("50ms"))
            with pytest.raises(RuntimeError, match="Timed out|timed out|deadline"):
                _futures.future_of(work, 1).then(lambda done: done.value()).wait()

    two.run(call)


def test_a_forked_child_has_a_thread_of_its_own(forked):
    output, status = forked("""
    from leeway.torch._futures import future_of
    def sum_of_one():
        alone, = leeway.Communicator.create_inproc(1)
        work = alone.all_reduce_async(torch.ones(1 << 20))
        works = [alone.all_reduce_async(torch.ones(1 << 20)) for _ in range(4)]
        return [future_of(work, 5).wait() for work in works]
    assert sum_of_one() == [5] * 4
    child = os.fork()
    if child == 0:
        os._exit(0 if sum_of_one() == [5] * 4 else 1)
    assert os.waitpid(child, 0)[1] == 0
    print("both")
    """, 1)
    assert status == 0 and "both" in output, output
