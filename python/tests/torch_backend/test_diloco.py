"""DiLoCo: values, agreement of ranks under loss, fragments, delay, checkpoints, bad input. Ranks are threads."""

import contextlib
import copy
import time

import pytest

torch = pytest.importorskip("torch")

import leeway
import leeway.torch as lt
from test_replica import a_model, batches, flat


def nesterov(ps):
    return torch.optim.SGD(ps, lr=0.7, momentum=0.9, nesterov=True)


def train(model, inner, data):
    losses = []
    for x, y in data:
        inner.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        inner.step()
        losses.append(loss.item())
    return losses


def setup(comm, seed=1, **options):
    model = a_model(seed, width=256)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, inner, lt.DiLoCo(model, inner, nesterov, **{"every": 5, **options}, process_group=comm)


def test_exact_equals_the_algorithm(group):
    def call(comm):
        model, inner, diloco = setup(comm, seed=comm.rank)
        with diloco:
            train(model, inner, batches(comm.rank, 10))
        assert diloco.steps == 10 and diloco.agreed()
        return flat(model)

    results = group(2).run(call)
    assert torch.equal(*results)
    replicas = [a_model(0, width=256) for _ in range(2)]
    inners = [torch.optim.AdamW(model.parameters(), lr=1e-3) for model in replicas]
    agreed = [torch.nn.Parameter(p.detach().clone()) for p in replicas[0].parameters()]
    outer = nesterov(agreed)
    for turn in range(2):
        for rank in range(2):
            train(replicas[rank], inners[rank], batches(rank, 10)[5 * turn:5 * turn + 5])
        for value, *locals_ in zip(agreed, *(model.parameters() for model in replicas)):
            value.grad = value.detach() - sum(p.detach() for p in locals_) / 2
        outer.step()
        with torch.no_grad():
            for value, *locals_ in zip(agreed, *(model.parameters() for model in replicas)):
                for p in locals_:
                    p.copy_(value)
    assert torch.allclose(results[0], flat(replicas[0]), atol=1e-6)


@pytest.mark.parametrize("options", [
    {}, {"fragments": 2}, {"fragments": 3, "delay": 2}, {"codec": "bf16", "error_feedback": True},
], ids=["whole", "fragments", "delay", "feedback"])
def test_ranks_agree_bit_by_bit_at_a_tenth_lost(group, options):
    def call(comm):
        model, inner, diloco = setup(comm, delivery=leeway.best_effort("5s"), **{"codec": "nvfp4", **options})
        seen, lost = [], 0
        with diloco:
            for turn in range(6):
                train(model, inner, batches(comm.rank, 5, seed=turn))
                assert diloco.agreed()
                seen.append(torch.cat([fragment.agreed for fragment in diloco._fragments]))
                lost += sum(report.loss for report in diloco.reports if report)
        return seen, flat(model), lost

    results = group(3, faults="loss=0.1,seed=7", seed=1).run(call)
    for seen, final, _ in results:
        assert all(torch.equal(a, b) for a, b in zip(seen, results[0][0])) and torch.equal(final, results[0][1])
    assert sum(lost for *_, lost in results) > 0
    assert not torch.equal(results[0][0][0], results[0][0][-1])


def test_ranks_count_by_weight_and_zero_counts_for_nothing(group):
    def call(comm):
        model = torch.nn.Linear(10, 1, bias=False)
        with torch.no_grad():
            model.weight.zero_()
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        diloco = lt.DiLoCo(model, inner, lambda ps: torch.optim.SGD(ps, lr=1.0), every=1, process_group=comm)
        found = []
        for weights in ((1, 3), (0, 5)):
            diloco.weight = weights[comm.rank]
            model.weight.grad = torch.full((1, 10), -1.0 - comm.rank)  # moves by 1 and by 2
            inner.step()
            diloco.step()
            found.append(model.weight[0, 0].item())
        return found

    assert group(2).run(call) == [[pytest.approx(7 / 4), pytest.approx(7 / 4 + 2)]] * 2


def test_a_late_mean_meets_what_was_trained_meanwhile(group):
    """mix=0.5: halfway between the ranks' own parameters and the agreed ones."""

    def call(comm):
        p = torch.nn.Parameter(torch.zeros(4, dtype=torch.float64))
        inner = torch.optim.SGD([p], lr=1.0)
        diloco = lt.DiLoCo([p], inner, lambda ps: torch.optim.SGD(ps, lr=1.0), every=3, delay=1, process_group=comm)
        with diloco:
            values = []
            for _ in range(4):
                p.grad = torch.full((4,), -1.0 - comm.rank, dtype=torch.float64)
                inner.step()
                values.append(p[0].item())
        return values, p[0].item()

    (first, last), (second, same) = group(2).run(call)
    assert first == [1, 2, 3, 0.5 * 4 + 0.5 * 4.5] and second == [2, 4, 6, 0.5 * 8 + 0.5 * 4.5] and last == same


@pytest.mark.parametrize("delay", [0, 3])
def test_a_checkpoint_goes_on_bit_by_bit(group, delay):
    """Between outer steps, and with means on their way."""

    def call(comm):
        options = {"fragments": 2, "delay": delay}
        data = batches(comm.rank, 18)
        model, inner, diloco = setup(comm, **options)
        with diloco:
            train(model, inner, data[:7])
            saved = copy.deepcopy(diloco.state_dict())
            train(model, inner, data[7:])
        uninterrupted = flat(model)
        model, inner, diloco = setup(comm, seed=9, **options)
        diloco.load_state_dict(saved)
        with diloco:
            train(model, inner, data[7:])
        assert any(one is not None for one in saved[f"rank{comm.rank}"][0]["received"]) == (delay > 0)
        return uninterrupted, flat(model)

    for uninterrupted, resumed in group(2).run(call):
        assert torch.equal(uninterrupted, resumed)


def test_a_deadline_that_passes_on_one_rank_does_not_part_them(group):
    """Rank 1 comes too late for rank 0's first call: both then take the exact mean."""
    def call(comm):
        model, inner, diloco = setup(comm, delivery=leeway.best_effort("50ms"), every=1)
        with diloco:
            for turn in range(3):
                if turn == 1 and comm.rank == 1:
                    time.sleep(0.3)
                train(model, inner, batches(comm.rank, 1, seed=turn))
                assert diloco.agreed()
        return flat(model)

    assert torch.equal(*group(2).run(call))


def test_bad_input_says_what_to_do(group):
    comm = group(1).communicators[0]
    model = a_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)

    def refuses(text, **options):
        with pytest.raises(leeway.InvalidArgumentError, match=text):
            lt.DiLoCo(**{"model": model, "inner": inner, "outer": nesterov, "every": 5, "process_group": comm, **options})

    refuses("every is at least 1", every=0)
    refuses("delay 0 to every - 1", delay=5)
    refuses("fragments=5: 1 to 4", fragments=5)
    refuses("mix=1", mix=1)
    refuses("torch.optim.Optimizer", inner=nesterov)
    refuses("spread must be exact", spread="best_effort")
    refuses("real floating", model=[torch.nn.Parameter(torch.zeros(3, dtype=torch.complex64))])
    diloco = lt.DiLoCo(model, inner, nesterov, every=5, process_group=comm)
    state = diloco.state_dict()
    with pytest.raises(leeway.InvalidArgumentError, match="other parameters or fragments"):
        lt.DiLoCo(model, inner, nesterov, every=5, fragments=2, process_group=comm).load_state_dict(state)
    with pytest.raises(leeway.InvalidArgumentError, match="that of 3 ranks"):
        diloco.load_state_dict({**state, "ranks": 3})


@pytest.mark.parametrize("fused", [False, True])
def test_an_inner_step_that_a_scaler_skips_on_one_rank_counts(group, fused):
    def call(comm):
        results = []
        for scaled in (True, False):
            model = a_model(comm.rank, width=256)
            inner = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
            diloco = lt.DiLoCo(model, inner, nesterov, every=3, process_group=comm)
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
            with diloco if scaled else contextlib.nullcontext():
                for number, (x, y) in enumerate(batches(comm.rank, 7)):
                    overflows = (number, comm.rank) == (2, 1)
                    inner.zero_grad()
                    loss = (model(x) - y).square().mean()
                    if scaled:
                        scaler.scale(loss * (float("inf") if overflows else 1)).backward()
                        scaler.step(inner)
                        scaler.update()
                    else:
                        loss.backward()
                        if not overflows:
                            inner.step()
                        diloco.step()
            diloco.synchronize()
            assert diloco.steps == 7 and diloco.agreed()
            results.append(flat(model))
        assert torch.allclose(*results, atol=1e-6)
        return results[0]

    assert torch.equal(*group(2).run(call))
