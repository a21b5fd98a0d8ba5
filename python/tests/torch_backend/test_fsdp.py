"""leeway.torch.fsdp: FSDP2 over Leeway's reduce-scatters and all-gathers, exact and lossy."""

MODEL = """
from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy

def model_of(mesh, seed=1, **options):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(30, 333), torch.nn.ReLU(), torch.nn.Linear(333, 333), torch.nn.ReLU(),
                                torch.nn.Linear(333, 7))  # sizes that need padding
    for layer in (model[2], model):
        fully_shard(layer, mesh=mesh, **options)
    return model

def train(model, steps, dtype=torch.float32):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(steps):
        inputs = torch.randn(16, 30)
        loss = (model(inputs).float() - inputs[:, :7].square()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

def whole(model):
    return torch.cat([parameter.full_tensor().flatten() for parameter in model.parameters()]).detach()
"""


def test_exact_equals_the_process_groups_own(forked):
    output, status = forked(MODEL + """
mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
exact = leeway.CollectiveOptions()
cases = [({}, None, 50, 1e-5), ({}, 3.0, 4, 1e-5),
         ({"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)}, None, 4, 2e-2),
         ({"mp_policy": MixedPrecisionPolicy(reduce_dtype=torch.float16)}, None, 4, 1e-3)]
for options, factor, steps, tolerance in cases:
    results = []
    for use in (False, True):
        model = model_of(mesh, **options)
        for module in (model, model[2]):
            if factor:
                module.set_gradient_divide_factor(factor)
                module.set_force_sum_reduction_for_comms(not use)  # Gloo has no PREMUL_SUM
        comms = lt.fsdp.use(model, reduce_scatter=exact, all_gather=exact) if use else None
        train(model, steps)
        results.append(whole(model))
    report = comms.report()
    assert report.calls == 2 * steps and report.loss == 0 and report.contributors == size, report
    assert comms.report() is None
    comms.close()
    difference = (results[0] - results[1]).abs().max()
    assert difference < tolerance, (options, factor, difference)
    print("difference", float(difference))
print("equal")
""")
    assert status == 0 and output.count("equal") == 2, output


def test_lossy_gradients_train(forked):
    output, status = forked(MODEL + """
mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"), codec="nvfp4")
twins = []
for use in (False, True):
    model = model_of(mesh)
    comms = lt.fsdp.use(model, reduce_scatter=lossy) if use else None
    losses = train(model, 100)
    twins.append(sum(losses[-10:]) / 10)
report = comms.report()
assert report.calls == 200 and 0.02 < report.loss < 0.3 and 1 < report.contributors < 2, report
assert twins[1] < 0.6 * losses[0] and twins[1] < 1.2 * twins[0], (losses[0], twins)
print("trained", twins, report)
""", 2, LEEWAY_FAULT="loss=0.1,seed=3", LEEWAY_DATAGRAM_BYTES="1200")
    assert status == 0 and output.count("trained") == 2, output


def test_tensors_elsewhere_are_copied_there_and_back(forked):
    """As CUDA's are; here the other place is host memory, too."""
    output, status = forked(MODEL + """
lt.fsdp.on_host = lambda tensor, user: tensor.clone()
mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
results = []
for use in (False, True):
    model = model_of(mesh)
    comms = lt.fsdp.use(model, all_gather=leeway.CollectiveOptions()) if use else None
    train(model, 3)
    results.append(whole(model))
assert torch.allclose(results[0], results[1], atol=1e-5)
print("copied")
""")
    assert status == 0 and output.count("copied") == 2, output


def test_hybrid_shards_reduce_inside_and_across(forked):
    output, status = forked(MODEL + """
mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
results = []
for use in (False, True):
    model = model_of(mesh)
    comms = lt.fsdp.use(model) if use else None
    train(model, 3)
    results.append(whole(model))
assert comms.report().calls == 6
assert torch.allclose(results[0], results[1], atol=1e-5)

# What use()'s module says about lines across: each element lost there is one rank's, not the mean.
lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("5s"))
mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"),
                                         backend_override={"replicate": ("leeway", lt.Options(gradients=lossy))})
model = fully_shard(torch.nn.Linear(1024, 256, bias=False), mesh=mesh)
(model(torch.ones(1, 1024)).sum() * rank).backward()
values = model.weight.grad.to_local().unique().tolist()
assert values == [0.5, 1.5, 2.5], values
print("both ways")
""", 4, LEEWAY_FAULT="loss=0.1,seed=5", LEEWAY_DATAGRAM_BYTES="1200")
    assert status == 0 and output.count("both ways") == 4, output


def test_bad_input_is_an_exception_that_says_what_to_do(forked):
    output, status = forked(MODEL + """
def fails(call, text, kind=leeway.InvalidArgumentError):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"no error: {text}")

lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("20ms"))
model = model_of(dist.device_mesh.init_device_mesh("cpu", (size,)))
fails(lambda: lt.fsdp.use(torch.nn.Linear(2, 2)), "fully_shard")
fails(lambda: lt.fsdp.use(model, reduce_scatter="lossy"), "CollectiveOptions")
fails(lambda: lt.fsdp.use(model, all_gather=lossy), "Replica")
fails(lambda: lt.fsdp._meaning(dist.ReduceOp.BAND), "BAND", leeway.UnsupportedError)
comms = lt.fsdp.use(model)
fails(lambda: comms.reduce_scatter(torch.zeros(2, device="meta"), torch.zeros(4, device="meta"), None, dist.ReduceOp.SUM),
      "host memory and on CUDA")
from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, ShardPlacementResult
infos = [FSDPMeshInfo(dist.device_mesh.DeviceMesh.from_group(dist.new_group(), "cpu"), shard_mesh_dim=0) for _ in range(2)]
several = torch.nn.Linear(8, 8)
fully_shard(several, mesh=infos[0].mesh, shard_placement_fn=lambda parameter: ShardPlacementResult(
    torch.distributed.tensor.Shard(0), infos[parameter is several.bias]))
fails(lambda: lt.fsdp.use(several), "several groups")
module = torch.distributed.fsdp.FSDPModule
custom = module.set_custom_all_gather
del module.set_custom_all_gather  # as torch 2.8
fails(lambda: lt.fsdp.use(model), "torch >= 2.9", leeway.UnsupportedError)
module.set_custom_all_gather = custom
print("says so")
""")
    assert status == 0 and output.count("says so") == 2, output
