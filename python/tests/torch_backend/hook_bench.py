"""What leeway.torch.ddp costs, and what training loses by it. Run by hand, on a quiet machine:

    torchrun --nproc-per-node 2 hook_bench.py cost       # microseconds of a bucket, beside the bare call
    torchrun --nproc-per-node 2 hook_bench.py gpt SEED   # a character GPT: DDP itself, and with 10 % loss
"""

import os
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import leeway
import leeway.torch as lt


class Bucket:
    """As DDP's, number `index` of `count` in a pass, of one tensor."""

    def __init__(self, tensor, parameters, index, count):
        self._tensor, self._parameters = tensor, parameters
        self._index, self._count = index, count

    def buffer(self):
        return self._tensor

    def parameters(self):
        return self._parameters

    def index(self):
        return self._index

    def is_last(self):
        return self._index == self._count - 1


def cost():
    """Interleaved: the hook, with its futures awaited; and the bare calls, with their works awaited. A bucket of the pass."""
    rounds, options = 200, leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("200ms"))
    for elements, count in ((1 << 10, 1), (1 << 10, 8), (1 << 16, 1), (1 << 16, 8), (1 << 18, 8)):
        states = {"hook": lt.ddp.HookState(options, exact_below=0, step_deadline="200ms"),
                  "hook, keep_equal=False": lt.ddp.HookState(options, exact_below=0, keep_equal=False),
                  "hook, error feedback": lt.ddp.HookState(options.replace(codec="nvfp4"), exact_below=0, error_feedback=True)}
        bare = states["hook"].communicator
        tensors = [torch.zeros(elements) for _ in range(count)]
        buckets = [Bucket(tensor, list(tensor.view(16, -1)), index, count) for index, tensor in enumerate(tensors)]
        coded = options.replace(codec="nvfp4")
        seconds = {name: ([], [], []) for name in ("bare call", "bare call, nvfp4", *states)}
        for _ in range(rounds):
            for name, (processor, inside, whole) in seconds.items():
                dist.barrier()
                begun, begun_processor = time.perf_counter(), time.thread_time()
                if name in states:
                    waited = [lt.ddp.hook(states[name], bucket) for bucket in buckets]
                else:
                    waited = [bare.all_reduce_async(tensor, options if name == "bare call" else coded) for tensor in tensors]
                inside.append((time.perf_counter() - begun) / count)
                processor.append((time.thread_time() - begun_processor) / count)
                for each in waited:
                    each.wait()
                whole.append((time.perf_counter() - begun) / count)
        if dist.get_rank() == 0:
            for name, times in seconds.items():
                processor, inside, whole = (1e6 * statistics.median(each) for each in times)
                print(f"{count} x {4 * elements:8d} bytes, {name:22}: {inside:6.1f} us in the call, {processor:5.1f} of them of the processor, "
                      f"{whole:7.1f} us to the end")
        for state in states.values():
            state.close()


class Gpt(nn.Module):
    def __init__(self, letters, width=96, heads=4, layers=2, context=64):
        super().__init__()
        self.context = context
        self.tokens, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)
                                     for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, text):
        mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        hidden = self.tokens(text) + self.places(torch.arange(text.shape[1]))
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        return self.out(self.norm(hidden))


def letters_of_python():
    folder = pathlib.Path(os.__file__).parent
    text = "".join((folder / name).read_text() for name in ("argparse.py", "ast.py", "enum.py", "typing.py", "datetime.py"))
    known = sorted(set(text))
    codes = torch.tensor([known.index(letter) for letter in text])
    return codes[:-20_000], codes[-20_000:], len(known)


def gpt(seed, steps=300):
    """The loss on held-out text at the end, of DDP over its own group and of DDP with the hook, from the same start."""
    learned, held_out, letters = letters_of_python()
    rank = dist.get_rank()
    arms = {"DDP itself": None,
            "hook, 10 % loss": dict(options=leeway.CollectiveOptions(delivery=leeway.best_effort("2s"))),
            "hook, nvfp4, 10 % loss": dict(options=leeway.CollectiveOptions(delivery=leeway.best_effort("2s"), codec="nvfp4"),
                                           error_feedback=True)}
    ends = {}
    for arm, options in arms.items():
        torch.manual_seed(seed)
        model = Gpt(letters)
        ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.25, gradient_as_bucket_view=True)
        if options:
            state = lt.ddp.HookState(exact_below=16384, faults=f"loss=0.1,seed={seed}", **options)
            ddp.register_comm_hook(state, lt.ddp.hook)
        optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
        torch.manual_seed(1000 * seed + rank)
        losses, begun = [], time.perf_counter()
        for _ in range(steps):
            places = torch.randint(len(learned) - model.context - 1, (16,))
            text = torch.stack([learned[place:place + model.context + 1] for place in places])
            loss = nn.functional.cross_entropy(ddp(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if options:
                losses.append(state.report().loss)
        seconds = (time.perf_counter() - begun) / steps
        with torch.no_grad():
            text = held_out[:len(held_out) // model.context * model.context].view(-1, model.context)
            ends[arm] = nn.functional.cross_entropy(model(text)[:, :-1].flatten(0, 1), text[:, 1:].flatten()).item()
        if rank == 0:
            print(f"seed {seed}, {arm:24}: loss {ends[arm]:.4f} ({ends[arm] / ends['DDP itself'] - 1:+.2%}), {1e3 * seconds:.0f} ms "
                  f"a step, {statistics.mean(losses) if losses else 0:.1%} lost", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    {"cost": cost, "gpt": gpt}[sys.argv[1]](*map(int, sys.argv[2:]))
    dist.destroy_process_group()
