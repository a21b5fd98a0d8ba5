"""GradientReducer and ComputeBudget: the mean per completed micro-batch, what becomes of data, checkpoints. Ranks are threads."""

import copy
import time

import pytest

torch = pytest.importorskip("torch")

import leeway
import leeway.torch as lt

LOSSY = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"))


def parameters_of(*shapes, dtype=torch.float32):
    return [torch.nn.Parameter(torch.ones(shape, dtype=dtype)) for shape in shapes]


def test_reduce_is_the_mean_per_unit(group):
    """Several buckets and types; a rank without work takes part; what nobody used has no gradient."""

    def call(comm):
        ps = parameters_of((100, 7), (33,), (5, 5)) + parameters_of((40,), dtype=torch.bfloat16)
        reducer = lt.GradientReducer(ps, bucket_bytes=100, process_group=comm)
        found = []
        for weights in ((1, 3, 2), (2, 0, 0)):
            weight = weights[comm.rank]
            for p in ps[:2] + ps[3:]:
                p.grad = torch.full_like(p, weight * (comm.rank + 1.0)) if weight else None
            reports = reducer.reduce(weight=weight)
            assert ps[2].grad is None and len(reports) == 4
            found.append([p.grad.flatten().tolist() for p in ps[:2] + ps[3:]])
        return found

    for found in group(3).run(call):
        for gradients, mean in zip(found, ((1 + 3 * 2 + 2 * 3) / 6, 1.0)):
            for values in gradients:
                assert values == pytest.approx([mean] * len(values), rel=5e-3)


def test_a_lossy_mean_is_the_same_on_all_ranks(group):
    def call(comm):
        ps = parameters_of((300_000,))
        reducer = lt.GradientReducer(ps, LOSSY, process_group=comm)
        generator = torch.Generator().manual_seed(comm.rank)
        ps[0].grad = torch.randn(300_000, generator=generator) + comm.rank
        report, = reducer.reduce()
        return ps[0].grad, report.loss

    results = group(2, faults="loss=0.1,seed=3").run(call)
    assert torch.equal(results[0][0], results[1][0])
    assert all(0.02 < loss < 0.2 for _, loss in results)
    assert results[0][0].mean().item() == pytest.approx(0.5, abs=0.1)


def test_a_deadline_that_passes_on_one_rank_does_not_part_them(group):
    """Rank 1 comes too late for the rest: both then take the exact mean."""

    def call(comm):
        ps = parameters_of((50_000,), (100,))
        reducer = lt.GradientReducer(ps, leeway.CollectiveOptions(delivery=leeway.best_effort("50ms")), bucket_bytes=100,
                                     process_group=comm)
        for step in range(2):
            for p in ps:
                p.grad = torch.full_like(p, comm.rank + 1.0)
            if step == 1 and comm.rank == 1:
                time.sleep(0.3)
            reducer.reduce()
        return torch.cat([p.grad for p in ps]), reducer.repeated

    for gradients, repeated in group(2).run(call):
        assert (gradients == 1.5).all() and repeated >= 1


def test_the_model_begins_with_rank_0s_values_and_owed_roundings_survive(group):
    def call(comm):
        model = torch.nn.BatchNorm1d(64)
        with torch.no_grad():
            model.weight.fill_(comm.rank + 1.0)
            model.running_mean.fill_(comm.rank + 5.0)
        options = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"), codec="mxfp4:nearest")
        reducer = lt.GradientReducer(model, options, error_feedback=True, process_group=comm)
        assert (model.weight == 1).all() and (model.running_mean == 5).all()
        gradients = torch.linspace(-1, 1, 64) * (comm.rank + 1)
        steps = []
        for step in range(4):
            if step == 2:  # resumed
                state = copy.deepcopy(reducer.state_dict())
                reducer = lt.GradientReducer(model, options, error_feedback=True, process_group=comm)
                reducer.load_state_dict(state)
            model.weight.grad, model.bias.grad = gradients.clone(), None
            reducer.reduce()
            steps.append(model.weight.grad.clone())
        return torch.stack(steps)

    for steps in group(2).run(call):
        true = torch.linspace(-1, 1, 64) * 1.5
        assert (steps.mean(0) - true).abs().mean() < 0.75 * (steps[0] - true).abs().mean()


def test_reducer_refuses(group):
    comm = group(1).communicators[0]
    with pytest.raises(leeway.InvalidArgumentError, match="ReplicaOptimizer bounds"):
        lt.GradientReducer(parameters_of((3,)), leeway.CollectiveOptions(spread="best_effort"), process_group=comm)
    with pytest.raises(leeway.InvalidArgumentError, match="float64: .*convert the model"):
        lt.GradientReducer(parameters_of((3,), dtype=torch.float64), process_group=comm)
    with pytest.raises(leeway.InvalidArgumentError, match="not a leeway.CollectiveOptions"):
        lt.GradientReducer(parameters_of((3,)), "lossy", process_group=comm)
    reducer = lt.GradientReducer(parameters_of((3,)), process_group=comm)
    with pytest.raises(leeway.InvalidArgumentError, match="other parameters"):
        reducer.load_state_dict({"rank0": [torch.zeros(16)]})


def test_a_budget_ends_steps_of_a_slow_rank(group):
    def call(comm):
        p = torch.nn.Parameter(torch.zeros(10))
        budget = lt.ComputeBudget(4, threshold="40ms", warm_up_steps=0, window_steps=0, process_group=comm)
        reducer = lt.GradientReducer([p], process_group=comm)
        loader, seen, means = list(range(100)), [], []
        for _ in range(3):
            p.grad = None
            for batch in budget.step(loader):
                seen.append(batch)
                time.sleep(0.03 * comm.rank)
                (p.sum() * (comm.rank + 1)).backward()
            reducer.reduce(weight=budget.weight)
            means.append((p.grad[0].item(), budget.weight))
        budget.synchronize()
        return seen, means, budget.statistics().all_ranks.dropped

    (fast, first, dropped), (slow, second, _) = group(2).run(call)
    assert fast == list(range(12)) and slow == list(range(len(slow))) and len(slow) + dropped == 12 and dropped > 0
    for (mean, weight), (same, less) in zip(first, second):
        assert weight == 4 and 1 <= less < 4 and mean == same == pytest.approx((4 + 2 * less) / (4 + less), rel=1e-6)


def test_loaders_begin_again_iterators_end_and_batches_come_back(group):
    class Sampler:
        epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

    class Loader(list):
        sampler = Sampler()

    comm = group(1).communicators[0]

    def make(**options):
        return lt.ComputeBudget(3, threshold=None, window_steps=0, process_group=comm, **options)

    budget, loader = make(), Loader("abcde")
    assert ["".join(budget.step(loader)) for _ in range(4)] == ["abc", "dea", "bcd", "eab"]
    assert budget.epoch == 2 and Sampler.epochs == [0, 1, 2]
    batches = iter("abcd")
    assert ["".join(budget.step(batches)) for _ in range(3)] == ["abc", "d", ""]
    assert budget.completed == 0 and budget.weight == 0
    batches = iter("abcd")
    list(budget.step(batches))
    assert (list(budget.step(batches)), budget.weight) == (["d"], 1)

    budget, loader = make(compensation="requeue"), list("abcdef")
    for batch in budget.step(loader):
        if batch == "b":
            break  # before its backward pass
    assert budget.completed == 1 and budget.weight == 1
    assert "".join(budget.step(loader)) == "bcd"
    with pytest.raises(leeway.InvalidArgumentError, match="before the first step"):
        budget.load_state_dict(budget.state_dict())


def test_should_stop_gives_up_what_runs(group):
    comm = group(1).communicators[0]
    budget = lt.ComputeBudget(3, threshold="30ms", warm_up_steps=0, window_steps=0, compensation="requeue", process_group=comm)
    loader, done = list("abcdef"), []
    for step in range(2):
        for batch in budget.step(loader):
            if step == 0 and batch == "b":
                time.sleep(0.04)
            if budget.should_stop():
                break
            done.append(batch)
        assert budget.weight == budget.completed > 0
        assert step > 0 or done == ["a"]
    assert done[:2] == ["a", "b"]
    budget.synchronize()
    assert budget.statistics().local.aborted == 1 and budget.steps_due(2) > 0


def test_a_budgets_checkpoint_goes_on_in_the_data(group):
    def call(comm):
        loader = list(range(10))

        def make():
            return lt.ComputeBudget(4, threshold=None, window_steps=0, compensation="extra_steps", process_group=comm)

        budget = make()
        for _ in range(3):
            list(budget.step(loader))
        state = budget.state_dict()
        rest = [list(budget.step(loader)) for _ in range(2)]
        budget.synchronize()
        due = budget.steps_due(20)
        budget = make()
        budget.load_state_dict(state)
        again = [list(budget.step(loader)) for _ in range(2)]
        budget.synchronize()
        assert budget.epoch == 1 and again == rest == [[2, 3, 4, 5], [6, 7, 8, 9]]
        return due, budget.steps_due(20)

    assert group(2).run(call) == [(15, 15)] * 2
