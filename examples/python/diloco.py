"""Ranks train by themselves and agree every 20 steps, in four bits an element, over a network that loses packets.

    LEEWAY_FAULT=loss=0.1 torchrun --nproc-per-node 2 diloco.py
"""

import torch
import torch.distributed as dist

import leeway
import leeway.torch as lt

dist.init_process_group("leeway")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Linear(512, 8))
target = torch.randn(64, 8)  # what training should find
inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
diloco = lt.DiLoCo(model, inner, outer=lambda ps: torch.optim.SGD(ps, lr=0.7, momentum=0.9, nesterov=True), every=20,
                   delivery=leeway.bounded(0.01, "5s"), codec="nvfp4", fragments=2, delay=5)  # for networks far away

torch.manual_seed(10 + dist.get_rank())  # data of its own
with diloco:
    for step in range(200):
        x = torch.randn(64, 64)
        inner.zero_grad()
        (model(x) - x @ target / 8).square().mean().backward()
        inner.step()
    assert diloco.agreed()

with torch.no_grad():  # leaving the context has left all ranks with the same parameters
    x = torch.randn(1000, 64)
    error = (model(x) - x @ target / 8).square().mean().item()
if dist.get_rank() == 0:
    sent = sum(report.bytes_sent for report in diloco.reports)
    print(f"error {error:.3f}; an outer step sends {sent / 1e3:.0f} kB for {sum(p.numel() for p in model.parameters())} parameters")
assert error < 0.3
dist.destroy_process_group()
