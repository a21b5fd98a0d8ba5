"""leeway.torch.ddp: right averages, exact and under loss; what it remembers; what it refuses; dead ranks."""

# A model whose gradients are what the test says: `scale`, everywhere. 1 MiB buckets after the first step.
MODEL = """
import time
from torch.nn.parallel import DistributedDataParallel

class Constant(torch.nn.Module):
    def __init__(self, sizes, dtype=torch.float32):
        super().__init__()
        self.parts = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size, dtype=dtype)) for size in sizes])
    def forward(self, scale):
        return sum((part * (scale if isinstance(scale, float) else scale[part.shape])).sum() for part in self.parts)

def ddp_of(model, state, **options):
    ddp = DistributedDataParallel(model, bucket_cap_mb=1, **options)
    ddp.register_comm_hook(state, lt.ddp.hook)
    return ddp

def gradients(ddp):
    return torch.cat([parameter.grad.flatten() for parameter in ddp.parameters()])

def step(ddp, scale):
    ddp.zero_grad()
    ddp(scale).backward()
    return gradients(ddp)
"""


def test_exact_averages_are_those_of_ddp_itself(forked):
    for backend in ("gloo", "leeway"):
        output, status = forked(MODEL + """
results = []
for view in (None, False, True):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
    with lt.ddp.HookState() as state:
        ddp = DistributedDataParallel(model) if view is None else ddp_of(model, state, gradient_as_bucket_view=view)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        torch.manual_seed(rank)
        for _ in range(4):
            optimizer.zero_grad()
            ddp(torch.randn(8, 64)).square().mean().backward()
            optimizer.step()
        results.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
        report = state.report()
        assert view is None or (report.step == 3 and report.buckets > 1 and report.loss == 0 and report.contributors == 2
                                and report.repaired == 0 and report.seconds > 0), report
assert torch.allclose(results[0], results[1], atol=1e-6) and torch.equal(results[1], results[2])
print("equal")
""", 2, backend)
        assert status == 0 and output.count("equal") == 2, output


def test_lossy_averages_are_sums_over_weights(forked):
    """Ranks' gradients are r + 1 a unit. Lost contributions leave the mean over those that came."""
    output, status = forked(MODEL + """
lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"))
with lt.ddp.HookState(lossy) as state:
    for view in (False, True):
        ddp = ddp_of(Constant([300_000, 300_000, 1000]), state, gradient_as_bucket_view=view)
        for weights in ((1, 1), (1, 2), (0, 3), (3, 0), (2.5, 2), (0, 0)):
            state.weight = weights[rank]
            got = step(ddp, float(weights[rank] * (rank + 1)))
            both = (weights[0] + 2 * weights[1]) / max(sum(weights), 1)
            right = {0.0, both} | {owner + 1.0 for owner in (0, 1) if weights[owner]}
            values, counts = got.unique(return_counts=True)
            assert all(min(abs(value - one) for one in right) < 1e-6 for value in values.tolist()), (weights, values)
            # Nothing is lost between a rank and itself, so one with weight has at least something everywhere.
            share = counts[(values - both).abs() < 1e-6].sum() / got.numel()
            assert share > 0.6, (weights, values, counts)
        report = state.report()
        assert 0.02 < report.loss < 0.2 and report.buckets >= 1, report
    state.weight = 1
    loss = [step(ddp, 1.0) is not None and state.report().loss for _ in range(3)]
    assert all(value > 0.02 for value in loss) and 1.5 < state.report().contributors < 2, state.report()
    assert (step(ddp, 1.0)[-1000:] == 1).all()
print("weighed")
""", 2, LEEWAY_FAULT="loss=0.1,seed=4")
    assert status == 0 and output.count("weighed") == 2, output


# One that no DistributedDataParallel makes.
BUCKET = """
class Bucket:
    def __init__(self, tensor, parameters=()): self.tensor, self.all = tensor, list(parameters)
    def buffer(self): return self.tensor
    def parameters(self): return self.all
    def index(self): return 0
    def is_last(self): return True
"""

# What ranks sent is what they had but for what is left in the residual: sum of results = mean over ranks of
# (sum of gradients - last residual), to rounding, if no residual was lost on the way.
FEEDBACK = MODEL + """
SIZES = [(512, 513), (1000, 300), (100,), (400, 400)]
def scales(step):
    torch.manual_seed(100 * step + rank)
    return {torch.Size(size): torch.randn(size).to(dtype) for size in SIZES}
def residuals(state, ddp):
    saved = state.state_dict(ddp)["memory"]
    return torch.cat([saved[f"rank{rank}.residual.{name}"].flatten() for name, _ in ddp.module.named_parameters()])
def over_ranks(tensor):
    dist.all_reduce(tensor)
    return tensor / size
coded = leeway.CollectiveOptions(delivery=leeway.bounded(0, "10s"), codec="nvfp4", spread_codec="native")
def state_of():
    return lt.ddp.HookState(coded, error_feedback=True, exact_below=0)
def run(ddp, steps):
    total, sent = 0, 0
    for number in steps:
        scale = scales(number)
        sent = sent + step(ddp, scale).float()
        total = total + torch.cat([scale[torch.Size(one)].float().flatten() for one in SIZES])
    return total, sent
"""


def test_error_feedback_survives_other_buckets(forked):
    output, status = forked(FEEDBACK + """
for dtype, tolerance in ((torch.float32, 2e-5), (torch.bfloat16, 0.1)):
    with state_of() as state:
        ddp = ddp_of(Constant(SIZES, dtype), state)
        run(ddp, range(1))
        buckets = [len(state._memories)]
        first = residuals(state, ddp)
        assert first.std() > 0.01
        total, sent = run(ddp, range(1, 4))
        buckets.append(len(state._memories))
        error = (sent - over_ranks(total - residuals(state, ddp) + first)).abs().max()
        assert error < tolerance, error
        lost = (sent - over_ranks(total - residuals(state, ddp))).abs().max()
        assert lost > 5 * error, (lost, error)
        assert dtype == torch.bfloat16 or buckets[0] < buckets[1] == state.report().buckets, buckets
print("kept")
""")
    assert status == 0 and output.count("kept") == 2, output


def test_tensors_elsewhere_are_copied_there_and_back(forked):
    """As CUDA's are; here the other place is host memory, too."""
    output, status = forked(MODEL + BUCKET + """
lt.ddp.on_host = lambda tensor, user: tensor.clone()
for options in ({}, {"codec": "nvfp4"}):
    coded = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"), **options)
    with lt.ddp.HookState(coded, error_feedback=True) as state:
        ddp = ddp_of(Constant([300_000, 300_000]), state)
        for _ in range(2):
            got = step(ddp, float(rank))
            assert ((got - 0.5).abs() < (0.2 if options else 1e-6)).all(), got.unique()
        done = lt.ddp.hook(state, Bucket(torch.full((8,), 1j * rank))).wait()
        assert (done == 0.5j).all(), done
print("copied")
""")
    assert status == 0 and output.count("copied") == 2, output


def test_what_was_left_out_is_paid_in_an_exact_bucket(forked):
    output, status = forked(BUCKET + """
with lt.ddp.HookState(leeway.CollectiveOptions(delivery=leeway.bounded(0, "10s"), codec="nvfp4"), error_feedback=True) as state:
    parts = [torch.nn.Parameter(torch.zeros(count)) for count in (40_000, 1000)]
    torch.manual_seed(rank)
    lt.ddp.hook(state, Bucket(torch.randn(41_000), parts)).wait()
    memory, offset, count = state._places[parts[1].data_ptr()]
    owed = memory.flat["residual"][offset:].clone()
    dist.all_reduce(owed)  # the owner of this part owes nothing
    assert count == 1000 and owed.std() > 0.01
    for due in (owed / size, torch.zeros(1000)):
        got = lt.ddp.hook(state, Bucket(torch.ones(1000), parts[1:])).wait()
        assert torch.allclose(got, 1 + due, atol=1e-6)
print("paid")
""")
    assert status == 0 and output.count("paid") == 2, output


def test_a_checkpoint_holds_what_was_left_out(forked):
    output, status = forked(FEEDBACK + """
import io
dtype = torch.float32
with state_of() as state:
    ddp = ddp_of(Constant(SIZES), state)
    state.weight = 1.0
    before = run(ddp, range(3))
    file = io.BytesIO()
    torch.save(state.state_dict(ddp), file)
    try:
        state.state_dict()
    except leeway.InvalidArgumentError as error:
        assert "give the model" in str(error), error
    else:
        raise AssertionError("no error")
file.seek(0)
with state_of() as state:
    ddp = ddp_of(Constant(SIZES), state)
    state.load_state_dict(torch.load(file), ddp)
    after = run(ddp, range(3, 6))
    assert state.report().step == 5, state.report()
    total, sent = before[0] + after[0], before[1] + after[1]
    error = (sent - over_ranks(total - residuals(state, ddp))).abs().max()
    assert error < 2e-5, error
print("resumed")
""")
    assert status == 0 and output.count("resumed") == 2, output


def test_a_control_variate_is_the_last_result(forked):
    output, status = forked(MODEL + """
options = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"), estimator="augmented")
with lt.ddp.HookState(options) as state:
    ddp = ddp_of(Constant([300_000, 200_000]), state)
    # The guess gets better with each step, and what is wrong where packets are missing is a part of its error.
    errors = [(step(ddp, 1.0) - 1).abs().mean() for _ in range(5)]
    assert errors[0] > 0 and errors[4] < errors[0] / 10, errors
    assert state.report().loss > 0.01
print("guessed")
""", 2, LEEWAY_FAULT="loss=0.1,seed=4")
    assert status == 0 and output.count("guessed") == 2, output


def test_replicas_stay_equal_where_a_deadline_cuts(forked):
    output, status = forked(MODEL + """
lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("30ms"), codec="nvfp4")
def differ(state):
    ddp = ddp_of(Constant([300_000, 300_000]), state)
    count = 0
    for number in range(4):
        ddp.zero_grad()
        loss = ddp(1.0)
        time.sleep(0.1 * (number % 2 == rank))  # the other one is long past its deadline
        loss.backward()
        largest = gradients(ddp).clone()
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        count += (largest != gradients(ddp)).sum().item()
    return count
with lt.ddp.HookState(lossy) as state:
    assert differ(state) == 0
    assert state.report().repaired > 0, state.report()
with lt.ddp.HookState(lossy, keep_equal=False) as state:
    apart = torch.tensor(differ(state))
    dist.all_reduce(apart)
    assert apart > 0 and state.report().repaired == 0
print("equal")
""")
    assert status == 0 and output.count("equal") == 2, output


def test_a_dead_rank_holds_nobody_up(forked):
    output, status = forked(MODEL + """
lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("10s"))
states = [lt.ddp.HookState(lossy, step_deadline="400ms", keep_equal=equal) for equal in (False, True)]
alone, together = [ddp_of(Constant([300_000, 200_000]), state) for state in states]
small = ddp_of(Constant([100]), states[0])
for _ in range(2):  # in the second step DDP forms its buckets, over gloo
    for ddp in (alone, together, small):
        step(ddp, 1.0)
if rank == 1:
    os._exit(0)
time.sleep(0.2)
for ddp in (alone, alone, alone, together, small):
    begun = time.perf_counter()
    try:
        step(ddp, 1.0)
        print("returns", flush=True)
    except Exception as error:
        assert "rank 1" in str(error), error
        print("says so", flush=True)
    assert time.perf_counter() - begun < 3, time.perf_counter() - begun
os._exit(0)
""", 2, LEEWAY_PEER_TIMEOUT_MS="500")
    assert status == 0 and output.count("returns") == 3 and output.count("says so") == 2, output


def test_bad_input_is_an_exception_that_says_what_to_do(forked):
    output, status = forked(BUCKET + """
def fails(call, text):
    try:
        call()
    except leeway.InvalidArgumentError as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"no error: {text}")

with lt.ddp.HookState() as state:
    assert state.report() is None
    fails(lambda: lt.ddp.hook(state, Bucket(torch.zeros(8, dtype=torch.int32))), "requires_grad=False")
    fails(lambda: lt.ddp.hook(state, Bucket(torch.zeros(8, device="meta"))), "host memory and on CUDA")
    fails(lambda: lt.ddp.HookState("lossy"), "CollectiveOptions")
    fails(lambda: lt.ddp.HookState(process_group=dist.GroupMember.NON_GROUP_MEMBER), "not in the process group")
    fails(lambda: lt.ddp.HookState(step_deadline="soon"), "soon")
    done = lt.ddp.hook(state, Bucket(torch.full((8,), 1j * rank))).wait()
    assert (done == 0.5j).all(), done
    def heavy(): state.weight = "heavy"
    fails(heavy, "heavy")
print("says so")
""")
    assert status == 0 and output.count("says so") == 2, output
