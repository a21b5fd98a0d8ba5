"""Runs a program that somebody else wrote, unchanged but for the backend's name: what it asks of Gloo goes to Leeway.

    torchrun --nproc-per-node 2 on_leeway.py SCRIPT [ARGUMENT...]

At the end each rank prints which backends its groups had, so that a test sees that Leeway did the work.
"""

import functools
import os
import runpy
import sys

import torch
import torch.distributed as dist

import leeway.torch  # noqa: F401

made = set()


def renamed(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        arguments = ["leeway" if argument == "gloo" else argument for argument in arguments]
        named = {name: "leeway" if name == "backend" and value in (None, "gloo") else value for name, value in named.items()}
        group = function(*arguments, **named)
        made.add(dist.get_backend(None if group is None else group))
        return group

    return call


dist.init_process_group = renamed(dist.init_process_group)
dist.new_group = renamed(dist.new_group)

sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
if "accelerate" in sys.argv[0].split(os.sep):
    import accelerate

    accelerate.PartialState(cpu=True)  # without an accelerator its scripts take one rank, unless the launcher said this
    DDP = torch.nn.parallel.DistributedDataParallel
    begin = DDP.__init__

    @functools.wraps(begin)
    def without_device(self, module, *, device_ids=None, output_device=None, **named):  # which test_ddp_comm_hook names
        begin(self, module, **named)

    DDP.__init__ = without_device
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    sys.stdout.flush()
    os.write(1, f"backends: {' '.join(sorted(made))}\n".encode())  # at once, or ranks' words mix
