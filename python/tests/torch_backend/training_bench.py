"""What loss costs a small GPT of characters, and what DropCompute gains: the figures of python/README.md.

    python training_bench.py replica [--seeds 1 2 3]       10 % lost beside a loss-free twin: perplexity
    python training_bench.py diloco                        H = 50, nvfp4, the same: validation loss
    python training_bench.py budget                        a rank of half the speed: samples a second

Ranks are processes on this machine, over loopback. Text, rates and model are those of `leeway train`, whose README says why: a run cut
short while its loss still falls steeply shows what loss costs many times enlarged. Without the `bible` command the text is that of
Python's help.
"""

import argparse
import json
import math
import os
import pydoc_data.topics
import subprocess
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint  # with what optimizers import at their first step: once, before ranks are forked
import torch.nn.functional as F

import leeway
import leeway.torch as lt

WIDTH, HEADS, CONTEXT, BATCH = 64, 4, 64, 8
BETAS = (0.9, 0.95)


def attention_bias():
    """Near characters count for more (ALiBi), later ones for nothing."""
    distance = torch.arange(CONTEXT).view(-1, 1) - torch.arange(CONTEXT)
    slopes = 3.0 * 0.5 ** torch.arange(HEADS).view(-1, 1, 1)
    return (-slopes * distance).masked_fill(distance < 0, -math.inf)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(WIDTH) for _ in range(2)])
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("bias", attention_bias())

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.relu(self.up(self.norms[1](x))))


class Gpt(torch.nn.Module):
    def __init__(self, characters, layers):
        super().__init__()
        self.characters = torch.nn.Embedding(characters, WIDTH)
        torch.nn.init.normal_(self.characters.weight, std=0.5)
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(layers)])
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, characters, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.characters(x))))


class Text:
    """Every tenth block of 16,384 characters is for validation, the first 1,024 windows of them all."""

    def __init__(self):
        try:
            text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
        except FileNotFoundError:
            text = "\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))
        kinds = sorted(set(text))
        self.characters = len(kinds)
        code = {character: number for number, character in enumerate(kinds)}
        data = torch.tensor([code[character] for character in text])
        blocks = data[:len(data) // 16384 * 16384].view(-1, 16384)
        valid = torch.arange(len(blocks)) % 10 == 9
        self.train, self.valid = blocks[~valid].flatten(), blocks[valid].flatten()

    def batch(self, generator):
        at = torch.randint(len(self.train) - CONTEXT - 1, (BATCH,), generator=generator)
        windows = torch.stack([self.train[i:i + CONTEXT + 1] for i in at])
        return windows[:, :-1], windows[:, 1:]

    @torch.no_grad()
    def perplexity(self, model):
        windows = self.valid[:min(1024, len(self.valid) // (CONTEXT + 1)) * (CONTEXT + 1)].view(-1, CONTEXT + 1)
        losses = [loss_of(model, part[:, :-1], part[:, 1:]) * len(part) for part in windows.split(64)]
        return math.exp(sum(losses).item() / len(windows))


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def setup(text, options, seed):
    torch.manual_seed(seed)
    return Gpt(text.characters, options.layers), torch.Generator().manual_seed(1000 * seed + dist.get_rank())


def falling(optimizer, steps):
    """Rises in the first tenth of the steps, and falls to zero as a cosine."""
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, [group["lr"] for group in optimizer.param_groups], steps, pct_start=0.1,
                                               cycle_momentum=False)


def learn(model, optimizer, schedule, text, generator, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, *text.batch(generator)).backward()
        optimizer.step()
        schedule.step()


def replica(text, options, seed):
    model, generator = setup(text, options, seed)
    optimizer = lt.ReplicaOptimizer(model.parameters(), lambda ps: torch.optim.Adam(ps, lr=options.rate, betas=BETAS),
                                    gradients=leeway.CollectiveOptions(delivery=leeway.best_effort("20s")),
                                    parameters=leeway.ReplicaOptions(age_max=8, deadline="20s", drift_every=50))
    schedule = falling(optimizer, options.steps)
    learn(model, optimizer, schedule, text, generator, options.steps)
    optimizer.synchronize()
    return {"perplexity": text.perplexity(model), "lost": optimizer.drift().loss}


def diloco(text, options, seed, codec="nvfp4"):
    model, generator = setup(text, options, seed)
    inner = torch.optim.Adam(model.parameters(), lr=options.rate, betas=BETAS)
    schedule = falling(inner, options.steps)
    with lt.DiLoCo(model, inner, lambda ps: torch.optim.SGD(ps, lr=0.7, momentum=0.9, nesterov=True), every=50,
                   delivery=leeway.best_effort("20s"), codec=codec, error_feedback=options.error_feedback) as outer:
        learn(model, inner, schedule, text, generator, options.steps)
        agreed = outer.agreed()
    assert agreed and outer.agreed()
    perplexity = text.perplexity(model)
    return {"perplexity": perplexity, "loss": math.log(perplexity), "lost": outer.reports[0].loss}


def budget(text, options, seed, threshold):
    model, generator = setup(text, options, seed)
    reducer = lt.GradientReducer(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    limit = lt.ComputeBudget(12, threshold=threshold, warm_up_steps=2, window_steps=12)
    loader = iter(lambda: text.batch(generator), None)
    began = done = 0
    for step in range(80):
        if step == 30:
            began, done = time.perf_counter(), 0
        for x, y in limit.step(loader):
            time.sleep(0.03 if dist.get_rank() == dist.get_world_size() - 1 else 0.015)  # an accelerator computes
            loss_of(model, x, y).backward()
        reducer.reduce(weight=limit.weight)
        optimizer.step()
        optimizer.zero_grad()
        done += limit.completed
    samples = torch.tensor([done * BATCH / (time.perf_counter() - began)])
    dist.all_reduce(samples)
    limit.synchronize()
    counts = limit.statistics().all_ranks
    return {"samples_s": samples.item(), "threshold_s": limit.threshold, "dropped": counts.dropped / counts.planned}


def on_ranks(ranks, faults, run):
    """Rank 0's result of run() in forked processes."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    os.environ["LEEWAY_FAULT"] = faults
                    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
                    result = run()
                    if rank == 0:
                        with open(f"{folder}/result", "w") as file:
                            json.dump(result, file)
                    dist.barrier()
                    status = 0
                except BaseException:
                    import traceback
                    traceback.print_exc()
                os._exit(status)
            children.append(child)
        if any([os.waitpid(child, 0)[1] for child in children]):
            raise SystemExit("a rank failed")
        with open(f"{folder}/result") as file:
            return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["replica", "diloco", "budget"])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--loss", type=float, default=0.1)
    parser.add_argument("--error-feedback", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = Text()
    if options.what == "budget":
        contenders = {"none": ("", lambda seed: budget(text, options, seed, None)),
                      "auto": ("", lambda seed: budget(text, options, seed, "auto"))}
        figure = "samples_s"
    else:
        train = replica if options.what == "replica" else diloco
        contenders = {"lossless": ("", lambda seed: train(text, options, seed)),
                      "lossy": (f"loss={options.loss},seed=", lambda seed: train(text, options, seed))}
        if options.what == "diloco":
            contenders["lossless, native"] = ("", lambda seed: diloco(text, options, seed, "native"))
        figure = "perplexity" if options.what == "replica" else "loss"
    found = {name: [] for name in contenders}
    for seed in options.seeds:
        for name, (faults, run) in contenders.items():
            began = time.perf_counter()
            result = on_ranks(options.ranks, faults and faults + str(seed), lambda: run(seed))
            found[name].append(result[figure])
            values = ", ".join(f"{key} {value:.4f}" for key, value in result.items())
            print(f"seed {seed}, {name}: {values} ({time.perf_counter() - began:.0f} s)", flush=True)
    first = next(iter(found))
    for name, values in list(found.items())[1:]:
        ratios = [100 * (value / other - 1) for value, other in zip(values, found[first])]
        print(f"{name} over {first}: {figure} {sum(ratios) / len(ratios):+.2f} % ({', '.join(f'{r:+.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
