"""A slow rank ends its steps early, and the gradient is the mean per completed micro-batch; its data are not lost.

    torchrun --nproc-per-node 2 drop_compute_torch.py
"""

import time

import torch
import torch.distributed as dist

import leeway.torch as lt

dist.init_process_group("leeway")
rank = dist.get_rank()
torch.manual_seed(1)
data = torch.utils.data.TensorDataset(torch.randn(1024, 16))
sampler = torch.utils.data.DistributedSampler(data)
loader = torch.utils.data.DataLoader(data, batch_size=16, sampler=sampler)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
reducer = lt.GradientReducer(model)  # lossy: GradientReducer(model, leeway.CollectiveOptions(...))
budget = lt.ComputeBudget(micro_batches=8, threshold="80ms", warm_up_steps=1, compensation="extra_steps")

step = 0
while budget.steps_due(10) > 0:
    for (x,) in budget.step(loader):
        time.sleep(0.005 if rank == 0 else 0.02)  # rank 1 is slow
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()  # gradients add up
    reducer.reduce(weight=budget.weight)
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    print(f"rank {rank}, step {step}: {budget.completed} of 8 micro-batches, epoch {budget.epoch}")
    budget.synchronize()  # steps_due() counts all ranks' work

counts = budget.statistics().all_ranks
if rank == 0:
    print(f"{counts.dropped} of {counts.planned} micro-batches dropped, {step} steps for the work of 10")
assert counts.completed >= 160
dist.destroy_process_group()
