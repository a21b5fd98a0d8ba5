"""Messages between some ranks, and then calls of all: ranks have made different numbers of calls by then."""

import pytest

HEAD = """
    from datetime import timedelta
    group = dist.new_group(backend="leeway", timeout=timedelta(seconds=10))
    def all_call():
        for elements in (3, 100_000):
            tensor = torch.full((elements,), rank + 1.0)
            dist.all_reduce(tensor, group=group)
            assert (tensor == size * (size + 1) / 2).all()
        dist.barrier(group=group)
"""


def test_messages_of_some_ranks_then_calls_of_all(forked):
    output, status = forked(HEAD + """
    def objects():
        if rank == 0:
            dist.send_object_list(["three", {"of": 3}], 1, group=group)
        elif rank == 1:
            received = [None, None]
            dist.recv_object_list(received, 0, group=group)
            assert received == ["three", {"of": 3}]

    def batched():
        if rank == 2:
            return
        theirs = torch.zeros(1000)
        calls = [dist.P2POp(dist.isend, torch.full((1000,), float(rank)), 1 - rank, group=group),
                 dist.P2POp(dist.irecv, theirs, 1 - rank, group=group)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        assert (theirs == 1 - rank).all()

    def single():
        mine = torch.full((100_000,), float(rank))
        if rank == 1:
            dist.send(mine, 2, group=group, tag=3)
        elif rank == 2:
            dist.recv(mine, group=group, tag=3)  # from any rank
            assert (mine == 1).all()

    def checked():
        dist.monitored_barrier(group=group)

    for some in (objects, batched, single, checked, objects, checked, batched):
        some()
        all_call()
    print("called")
    """, 3, timeout=150)
    assert status == 0 and output.count("called") == 3, output


def test_a_monitored_barrier_after_a_failed_one_fails_at_once(forked):
    output, status = forked("""
    import time
    from datetime import timedelta
    group = dist.new_group(backend="leeway", timeout=timedelta(seconds=30))
    time.sleep(3 * rank)
    for turn in range(3):
        begun = time.monotonic()
        try:
            dist.monitored_barrier(group=group, timeout=timedelta(seconds=1))
        except RuntimeError as error:
            assert turn == 0 or "make a new group" in str(error), error
            assert time.monotonic() - begun < 2.5, "the time-out counted twice"
            print("failed")
    """, timeout=60)
    assert status == 0 and output.count("failed") == 6, output


def test_a_time_out_of_centuries(forked):
    output, status = forked("""
    from datetime import timedelta
    group = dist.new_group(backend="leeway", timeout=timedelta(days=200_000))
    tensor = torch.ones(10)
    dist.all_reduce(tensor, group=group)
    assert (tensor == 2).all(), tensor
    print("right")
    """)
    assert status == 0 and output.count("right") == 2, output


def test_a_message_may_be_received_after_a_call_of_all(forked):
    output, status = forked(HEAD + """
    for turn in range(4):
        message = torch.full((100_000 if turn % 2 else 10,), float(rank))
        if rank == turn // 2:
            sending = dist.isend(message, 1 - rank, group=group)
            all_call()
            sending.wait()
        else:
            all_call()
            dist.recv(message, 1 - rank, group=group)
            assert (message == 1 - rank).all()
    print("received")
    """, timeout=150)
    assert status == 0 and output.count("received") == 2, output


@pytest.mark.parametrize("schedule", ["ScheduleGPipe", pytest.param("Schedule1F1B", marks=pytest.mark.long)])
def test_pipeline_schedules(forked, schedule):
    output, status = forked(HEAD + f"""
    from torch.distributed import pipelining
    torch.manual_seed(3)
    whole = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(size)])
    inputs, target = torch.randn(8, 16), torch.randn(8, 16)
    stage = pipelining.PipelineStage(whole[rank], rank, size, torch.device("cpu"), group=group)
    schedule = pipelining.{schedule}(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    for _ in range(3):
        stage.submod.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(inputs)
        elif rank == size - 1:
            schedule.step(target=target, losses=losses)
        else:
            schedule.step()
        all_call()
    gradient = stage.submod.weight.grad.clone()
    whole.zero_grad()
    torch.nn.functional.mse_loss(whole(inputs), target).backward()
    assert torch.allclose(gradient, whole[rank].weight.grad, atol=1e-5)
    print("trained")
    """, 3, timeout=150)
    assert status == 0 and output.count("trained") == 3, output
