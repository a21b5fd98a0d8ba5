"""torch's own communication hooks of DistributedDataParallel. Most begin a second call in the continuation of a first one."""

# Each hook trains the same model over Gloo and over Leeway. Hooks that begin further calls get one bucket: of several, each
# rank begins them in an order of its own, over Gloo, too.
SOURCE = """
    from datetime import timedelta
    from torch.distributed.algorithms.ddp_comm_hooks import (debugging_hooks, default_hooks, optimizer_overlap_hooks, post_localSGD_hook,
                                                             powerSGD_hook, quantization_hooks)

    class InBackward:  # what an overlapped optimizer must have
        def step_param(self, parameter, gradient):
            with torch.no_grad():
                parameter.sub_(gradient, alpha=0.1)

    def power(group, **options):
        return powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=2, min_compression_rate=0.5, **options)

    def local(group):
        return post_localSGD_hook.PostLocalSGDState(group, group, start_localSGD_iter=3)

    def plain(group):
        return group

    def late(group):  # torch 2.15's batched form fails in _orthogonalize() once it has begun, over any backend
        return powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=100)

    power_hook = powerSGD_hook.powerSGD_hook
    overlapped = optimizer_overlap_hooks._hook_then_optimizer(default_hooks.allreduce_hook,
                                                              optimizer_overlap_hooks._OptimizerHookState(InBackward()))
    hooks = {
        "allreduce": (plain, default_hooks.allreduce_hook),
        "fp16": (plain, default_hooks.fp16_compress_hook),
        "bf16": (plain, default_hooks.bf16_compress_hook),
        "power": (power, power_hook),
        "power of rank 2": (lambda group: power(group, matrix_approximation_rank=2), power_hook),
        "power in fp16": (power, default_hooks.fp16_compress_wrapper(power_hook)),
        "power in bf16": (power, default_hooks.bf16_compress_wrapper(power_hook)),
        "power, batched": (late, powerSGD_hook.batched_powerSGD_hook),
        "quantized by tensor": (plain, quantization_hooks.quantization_pertensor_hook),
        "quantized by channel": (plain, quantization_hooks.quantization_perchannel_hook),
        "local": (local, post_localSGD_hook.post_localSGD_hook),
        "nothing": (plain, debugging_hooks.noop_hook),
        "overlapped": (plain, overlapped),
    }

    one_call = "allreduce", "fp16", "bf16", "nothing", "overlapped"

    def trained(group, state, hook, name):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
        ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.01 if name in one_call else 25)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        ddp.register_comm_hook(state(group), hook)
        torch.manual_seed(rank + 10)
        for _ in range(5):
            optimizer.zero_grad()
            (ddp(torch.randn(16, 32)) - 1).square().mean().backward()
            if name != "overlapped":
                optimizer.step()
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    groups = [dist.new_group(backend=backend, timeout=timedelta(seconds=10)) for backend in ("gloo", "leeway")]
    for name, (state, hook) in hooks.items():
        gloo, leeway_ = [trained(group, state, hook, name) for group in groups]
        assert torch.allclose(gloo, leeway_, rtol=1e-5, atol=1e-6), (name, (gloo - leeway_).abs().max())
        print(name, "equal")
    print("hooks", len(hooks))
"""


def test_torchs_hooks_train_as_over_gloo(forked):
    output, status = forked(SOURCE, timeout=150)
    assert status == 0 and output.count("hooks 13") == 2, output
