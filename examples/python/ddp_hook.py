"""DistributedDataParallel whose gradients may lose packets: three lines more than without.

    LEEWAY_FAULT=loss=0.1 torchrun --nproc-per-node 2 ddp_hook.py
"""

import torch
import torch.distributed as dist

import leeway
import leeway.torch as lt

dist.init_process_group("gloo")  # or "leeway", or what the script had
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 512), torch.nn.Tanh(), torch.nn.Linear(512, 256), torch.nn.Linear(256, 1))
ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)

lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("2s"), codec="nvfp4")
state = lt.ddp.HookState(lossy, step_deadline="5s", error_feedback=True)
ddp.register_comm_hook(state, lt.ddp.hook)

optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
torch.manual_seed(1 + rank)  # each rank has samples of its own
for step in range(60):
    inputs = torch.randn(64, 32)
    loss = (ddp(inputs)[:, 0] - inputs.sum(1).sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 20 == 19:
        report = state.report()
        print(f"step {step + 1}: loss {loss.item():.3f}, {report.buckets} bucket(s) in {1e3 * report.seconds:.1f} ms, "
              f"lost {report.loss:.1%}, {report.contributors:.2f} contributors")

# A checkpoint of this rank: what the codec left out goes with it.
checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "hook": state.state_dict(ddp)}
state.load_state_dict(checkpoint["hook"], ddp)
state.close()
dist.destroy_process_group()
