"""torch.distributed.checkpoint of what trains, over a group of Gloo, and ranks that die."""

HEAD = """
    import time
    import torch.distributed.checkpoint as dcp

    def batch(step):
        x = torch.randn(32, 16, generator=torch.Generator().manual_seed(100 * step + rank))
        return x, x.sum(1, keepdim=True).sin()

    def a_model(seed=1):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))

    def train(model, optimizer, steps):
        for step in steps:
            x, y = batch(step)
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()

    def flat(model):
        return torch.cat([p.detach().flatten() for p in model.parameters()])
"""


def test_a_resumed_run_is_the_uninterrupted_one(forked, tmp_path):
    """DiLoCo and ComputeBudget are Stateful: given to dcp as they are."""
    output, status = forked(HEAD + f"""
    folder = {str(tmp_path)!r}

    def make(seed):
        model = a_model(seed)
        return model, lt.ReplicaOptimizer(model.named_parameters(), lambda ps: torch.optim.AdamW(ps, lr=1e-2))

    model, optimizer = make(1)
    train(model, optimizer, range(5))
    dcp.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict()}}, checkpoint_id=folder + "/replica")
    train(model, optimizer, range(5, 9))
    resumed, optimizer = make(2)
    state = {{"model": resumed.state_dict(), "optimizer": optimizer.state_dict()}}
    dcp.load(state, checkpoint_id=folder + "/replica")
    resumed.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    train(resumed, optimizer, range(5, 9))
    assert torch.equal(flat(model), flat(resumed))

    def make(seed):
        model = a_model(seed)
        inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
        diloco = lt.DiLoCo(model, inner, lambda ps: torch.optim.SGD(ps, lr=.7, momentum=.9, nesterov=True), every=4, fragments=2,
                           delay=1)
        return model, inner, diloco, lt.ComputeBudget(3, threshold=None, window_steps=0)

    loader = torch.utils.data.DataLoader(list(range(28)), batch_size=2, sampler=torch.utils.data.DistributedSampler(range(28)))
    model, inner, diloco, budget = make(1)
    with diloco:
        train(model, inner, range(7))
        for _ in range(3):  # into the second epoch
            list(budget.step(loader))
        dcp.save({{"diloco": diloco, "budget": budget}}, checkpoint_id=folder + "/diloco")
        train(model, inner, range(7, 13))
    resumed, inner, diloco, again = make(2)
    dcp.load({{"diloco": diloco, "budget": again}}, checkpoint_id=folder + "/diloco")
    with diloco:
        train(resumed, inner, range(7, 13))
    assert torch.equal(flat(model), flat(resumed)) and diloco.agreed()
    uninterrupted = torch.stack(list(budget.step(loader)))
    assert torch.equal(uninterrupted, torch.stack(list(again.step(loader)))) and again.epoch == budget.epoch == 1
    print("equal")
    """)
    assert status == 0 and output.count("equal") == 2, output


def test_a_killed_rank_ends_each_call_by_its_deadline(forked):
    output, status = forked(HEAD + """
    exact = leeway.CollectiveOptions(delivery=leeway.exact("3s"))
    model = a_model()
    optimizer = lt.ReplicaOptimizer(model.parameters(), lambda ps: torch.optim.SGD(ps, lr=0.1), gradients=exact)
    other = a_model()
    reducer = lt.GradientReducer(other, exact)
    third = a_model()
    inner = torch.optim.SGD(third.parameters(), lr=0.1)
    diloco = lt.DiLoCo(third, inner, lambda ps: torch.optim.SGD(ps, lr=0.7), every=1, delivery=leeway.best_effort("3s"))
    train(model, optimizer, range(2))
    reducer.reduce()
    if rank == 1:
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    for number, call in enumerate((optimizer.step, reducer.reduce, diloco.step)):
        begun = time.monotonic()
        try:
            call()
        except (leeway.PeerLostError, leeway.DeadlineExceededError) as error:
            assert time.monotonic() - begun < 8, error
            print("ended", number, error)
    sys.stdout.flush()
    os._exit(0)
    """.replace("import time", "import sys, time"), LEEWAY_PEER_TIMEOUT_MS="700")
    assert output.count("ended") == 3, output
