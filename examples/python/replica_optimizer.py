"""A model whose optimizer is shared out over the ranks: lossy gradients in, lossy parameters out, replicas that stay near.

    LEEWAY_FAULT=loss=0.1 torchrun --nproc-per-node 2 replica_optimizer.py
"""

import torch
import torch.distributed as dist

import leeway
import leeway.torch as lt

dist.init_process_group("leeway")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Linear(512, 8))
target = torch.randn(64, 8)  # what training should find
optimizer = lt.ReplicaOptimizer(model.parameters(), lambda ps: torch.optim.AdamW(ps, lr=3e-3),
                                gradients=leeway.CollectiveOptions(delivery=leeway.best_effort("500ms")),
                                parameters=leeway.ReplicaOptions(age_max=8), clip_norm=1.0)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)

torch.manual_seed(10 + dist.get_rank())  # data of its own
for step in range(100):
    x = torch.randn(64, 64)
    loss = (model(x) - x @ target / 8).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

optimizer.synchronize()  # before evaluation and checkpoints
with torch.no_grad():
    x = torch.randn(1000, 64)
    error = (model(x) - x @ target / 8).square().mean().item()
if dist.get_rank() == 0:
    begin, end = optimizer.owned_range
    print(f"error {error:.3f}; rank 0 updates {end - begin} parameters of {sum(p.numel() for p in model.parameters())};",
          optimizer.drift())
assert error < 0.3
optimizer.close()
dist.destroy_process_group()
