"""Replica, LateWork and ComputeBudget over groups of threads."""

import numpy as np
import pytest

import leeway


def test_replicas_stay_near_and_synchronize(group):
    pair = group(3, faults="loss=0.1,seed=3", seed=4)

    def train(comm):
        parameters = np.zeros(30_000, np.float32)
        replica = leeway.Replica(comm, parameters, leeway.ReplicaOptions(age_max=4, drift_every=4))
        lossy = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("5s"))
        begin, end = replica.owned_range
        for step in range(12):
            gradient = np.full(30_000, 1 + 0.1 * step, np.float32)
            replica.reduce_gradients(gradient, lossy)
            replica.owned()[:] -= 0.01 * gradient[begin:end]
            replica.broadcast_parameters()
        drift = replica.drift()
        report = replica.synchronize()
        return parameters, drift, report.complete, (begin, end)

    results = pair.run(train)
    for parameters, drift, agreed, _ in results:
        assert agreed and (parameters == results[0][0]).all()
        assert drift.measurements == 3 and 0.05 < drift.loss < 0.25
        assert drift.age_max_seen <= 4 and drift.pair_measured > 0
        assert sum(drift.age_histogram) > 0 and "loss=" in repr(drift)
    assert [bounds for *_, bounds in results][0][0] == 0 and results[2][3][1] == 30_000
    assert results[0][0][0] == pytest.approx(-0.01 * sum(1 + 0.1 * step for step in range(12)), rel=1e-5)


def test_a_replica_keeps_its_array(group):
    def call(comm):
        replica = leeway.Replica(comm, np.arange(100, dtype=np.float32))
        owned = replica.owned()
        begin, end = replica.owned_range
        del replica
        return owned.tolist() == list(range(begin, end))

    assert group(2).run(call) == [True, True]


def test_replica_refuses(group):
    comm = group(1).communicators[0]
    with pytest.raises(leeway.InvalidArgumentError, match="float32, not double"):
        leeway.Replica(comm, np.zeros(10))
    with pytest.raises(leeway.InvalidArgumentError, match="delivery"):
        leeway.ReplicaOptions(delivery="bounded")
    replica = leeway.Replica(comm, np.zeros(10, np.float32))
    with pytest.raises(leeway.InvalidArgumentError):
        replica.reduce_gradients(np.zeros(11, np.float32))


def test_compute_budget_stops_a_slow_rank(group):
    """A fixed threshold of 20 ms; rank 1's micro-batches take 15 ms: it ends with fewer, and the mean is right."""
    import time

    def train(comm):
        budget = leeway.ComputeBudget(comm, 4, threshold="20ms", warm_up_steps=0, window_steps=0)
        means = []
        for _ in range(3):
            total = np.zeros(10, np.float32)
            while budget.next_micro_batch():
                if comm.rank == 1:
                    time.sleep(0.015)
                total += 1 + comm.rank
            comm.all_reduce(total, op="avg", weight=budget.weight)
            means.append((total[0], budget.weight, budget.completed))
        budget.synchronize()
        statistics = budget.statistics()
        return means, statistics.local.dropped, statistics.all_ranks.planned, budget.threshold

    (first, dropped_first, planned, threshold), (second, dropped_second, *_) = group(2).run(train)
    assert planned == 24 and threshold == pytest.approx(0.02)
    assert dropped_first == 0 and dropped_second > 0
    for (mean, fast, _), (same, slow, completed) in zip(first, second):
        assert mean == same and slow == completed < fast
        assert mean == pytest.approx((fast + 2 * slow) / (fast + slow), rel=1e-6)


def test_late_work_carries_what_was_missed(group):
    def train(comm):
        late = leeway.LateWork(100)
        options = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("1s"), weight=2)
        for _ in range(3):
            gradient = np.ones(100, np.float32)
            late.keep(comm.all_reduce(gradient, late.add_to(gradient, options)))
        return late.statistics.carried, gradient[0]

    assert group(2).run(train) == [(0, 0.5)] * 2


def test_what_outlives_its_communicator_says_so(group):
    def call(comm):
        replica = leeway.Replica(comm, np.zeros(100, np.float32))
        budget = leeway.ComputeBudget(comm, 2, threshold=None, window_steps=0)
        comm.close()
        with pytest.raises(leeway.InvalidArgumentError, match="closed"):
            replica.broadcast_parameters()
        with pytest.raises(leeway.InvalidArgumentError, match="closed"):
            budget.next_micro_batch()
        return True

    assert group(2).run(call) == [True, True]
