"""FSDP2 (fully_shard) whose gradients may lose packets; parameters are gathered exactly.

    LEEWAY_FAULT=loss=0.1 torchrun --nproc-per-node 2 fsdp2.py
"""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import leeway
import leeway.torch as lt

dist.init_process_group("leeway")  # all-gathers of parameters, and the rest, are exact
rank = dist.get_rank()
mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 512), torch.nn.Tanh(), torch.nn.Linear(512, 256), torch.nn.Linear(256, 1))
for layer in (*model, model):
    if isinstance(layer, (torch.nn.Linear, torch.nn.Sequential)):
        fully_shard(layer, mesh=mesh)

lossy = leeway.CollectiveOptions(delivery=leeway.best_effort("2s"), codec="nvfp4")
comms = lt.fsdp.use(model, reduce_scatter=lossy)

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(1 + rank)  # each rank has samples of its own
for step in range(60):
    inputs = torch.randn(64, 32)
    loss = (model(inputs)[:, 0] - inputs.sum(1).sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report = comms.report()
    if rank == 0 and step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.3f}, {report.calls} reduce-scatters, lost {report.loss:.1%}, "
              f"{report.contributors:.2f} contributors")
comms.close()
dist.destroy_process_group()
