#!/usr/bin/env python3
"""`tools/demo --torch`: a small GPT in PyTorch under torchrun, whose gradients lose packets, beside Gloo and a loss-free twin.

Each run trains the same model from the same seed on the same batches. The text is what Debian's bible-kjv prints, or --corpus.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = {  # by name: title, backend of the group, part of the packets that are lost, with the hook
    "gloo": ("Gloo over TCP", "gloo", 0, False),
    "twin": ("Leeway exact, its loss-free twin", "leeway", 0, False),
    "exact": ("Leeway exact", "leeway", None, False),
    "hook": ("Leeway, DDP hook, best effort", "leeway", None, True),
}
REPORT_EVERY = 50  # steps


def arguments():
    parser = argparse.ArgumentParser(prog="tools/demo --torch", description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--loss", type=float, default=0.1, help="part of Leeway's packets that injected faults lose")
    parser.add_argument("--codec", default="native", help="of lossy gradients: native, bf16, nvfp4, ...")
    parser.add_argument("--batch", type=int, default=8, help="windows a rank and step")
    parser.add_argument("--context", type=int, default=64, help="characters that the model sees")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", default=",".join(RUNS), help="of: " + ", ".join(RUNS))
    parser.add_argument("--corpus", help="a text to learn in place of bible-kjv's")
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)  # this process is a rank of that run
    parser.add_argument("--result", help=argparse.SUPPRESS)
    return parser.parse_args()


# -- a rank

def text_of(corpus):
    import torch

    data = torch.frombuffer(bytearray(pathlib.Path(corpus).read_bytes()), dtype=torch.uint8)
    characters, tokens = data.unique(return_inverse=True)
    held_out = len(tokens) // 20
    return len(characters), tokens[:-held_out], tokens[-held_out:]


def model_of(vocabulary, a):
    import torch
    from torch import nn

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, a.width), nn.Embedding(a.context, a.width)
            layer = nn.TransformerEncoderLayer(a.width, 4, 4 * a.width, dropout=0, activation="gelu", batch_first=True,
                                               norm_first=True)
            self.layers = nn.TransformerEncoder(layer, a.layers, nn.LayerNorm(a.width), enable_nested_tensor=False)
            self.head = nn.Linear(a.width, vocabulary, bias=False)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(a.context))

        def forward(self, tokens):
            x = self.token(tokens) + self.place.weight
            return self.head(self.layers(x, mask=self.mask, is_causal=True))

    torch.manual_seed(a.seed)
    return Gpt()


def train(a):
    import torch
    import torch.distributed as dist

    import leeway
    import leeway.torch as lt

    title, backend, _, with_hook = RUNS[a.rank_of]
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    vocabulary, training, held_out = text_of(a.corpus)
    model = model_of(vocabulary, a)
    ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    state = None
    if with_hook:
        state = lt.ddp.HookState(leeway.CollectiveOptions(delivery=leeway.best_effort("5s"), codec=a.codec))
        ddp.register_comm_hook(state, lt.ddp.hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, a.steps, pct_start=0.1)

    def windows(tokens, starts):
        rows = torch.stack([tokens[start:start + a.context + 1] for start in starts.tolist()])
        return rows[:, :-1], rows[:, 1:]

    def loss_of(network, tokens, starts):
        inputs, targets = windows(tokens, starts)
        return torch.nn.functional.cross_entropy(network(inputs).flatten(0, 1), targets.flatten())

    batches = torch.Generator().manual_seed(1000 * a.seed + dist.get_rank())
    seconds, lost = [], []
    for step in range(a.steps):
        begun = time.perf_counter()
        loss = loss_of(ddp, training, torch.randint(len(training) - a.context - 1, (a.batch,), generator=batches))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        seconds.append(time.perf_counter() - begun)
        if state:
            lost.append(state.report().loss)
        if dist.get_rank() == 0 and (step + 1) % REPORT_EVERY == 0:
            missing = f", {statistics.mean(lost):.1%} of the gradients missing" if lost else ""
            print(f"   step {step + 1}: loss {loss.item():.3f}, {1e3 * statistics.median(seconds):.0f} ms a step{missing}", flush=True)
    if dist.get_rank() == 0:
        with torch.no_grad():
            starts = torch.arange(0, len(held_out) - a.context - 1, a.context)[:512]
            held_out_loss = statistics.mean(loss_of(model, held_out, part).item() for part in starts.split(64))
        pathlib.Path(a.result).write_text(json.dumps({
            "title": title, "perplexity": math.exp(held_out_loss), "step_ms": 1e3 * statistics.median(seconds),
            "missing": statistics.mean(lost) if lost else 0, "parameters": sum(p.numel() for p in model.parameters())}))
    dist.barrier()
    if state:
        state.close()
    dist.destroy_process_group()


# -- the process that starts the ranks

def corpus_of(a, folder):
    if a.corpus:
        return a.corpus
    try:
        text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        sys.exit("the text is that of the command `bible`: apt-get install bible-kjv, or name one with --corpus FILE")
    path = os.path.join(folder, "text")
    pathlib.Path(path).write_bytes(text)
    return path


def run(name, a, corpus, folder):
    loss = RUNS[name][2]
    environment = {key: value for key, value in os.environ.items() if key != "LEEWAY_FAULT"}
    if loss is None and a.loss > 0:
        environment["LEEWAY_FAULT"] = f"loss={a.loss},seed={a.seed}"
    environment["OMP_NUM_THREADS"] = "1"
    result = os.path.join(folder, name)
    own = [argument for key in ("steps", "loss", "codec", "batch", "context", "width", "layers", "seed")
           for argument in (f"--{key}", str(getattr(a, key)))]
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={a.ranks}", __file__,
                           "--rank-of", name, "--result", result, "--corpus", corpus, *own], env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"the run `{name}` ended with {done.returncode}")
    return {**json.loads(pathlib.Path(result).read_text()), "loss": a.loss if loss is None else 0}


def table(results):
    base = results.get("twin", next(iter(results.values())))
    print(f"\n{'':34} {'packets lost':>12} {'perplexity':>10} {'beside':>8} {'step':>8}")
    for result in results.values():
        beside = "" if result is base else f"{result['perplexity'] / base['perplexity'] - 1:+.1%}"
        print(f"{result['title']:34} {result['loss']:>12.0%} {result['perplexity']:>10.3f} {beside:>8} {result['step_ms']:>5.0f} ms")


def main():
    a = arguments()
    if a.rank_of:
        return train(a)
    names = a.runs.split(",")
    if unknown := [name for name in names if name not in RUNS]:
        sys.exit(f"--runs: {unknown[0]} is none of {', '.join(RUNS)}")
    print(f"{len(names)} runs of {a.steps} steps on {a.ranks} ranks; some {len(names) * (10 + a.steps * a.ranks * 0.015):.0f} s "
          "on two quiet cores", flush=True)
    results = {}
    with tempfile.TemporaryDirectory(prefix="leeway-demo-") as folder:
        corpus = corpus_of(a, folder)
        for number, name in enumerate(names, 1):
            begun = time.monotonic()
            print(f"\n{number} of {len(names)}: {RUNS[name][0]}", flush=True)
            results[name] = run(name, a, corpus, folder)
            left = (time.monotonic() - begun) * (len(names) - number)
            print(f"   took {time.monotonic() - begun:.0f} s" + (f"; some {left:.0f} s to go" if left else ""), flush=True)
    table(results)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(results, indent=2) + "\n")
    return None


if __name__ == "__main__":
    main()
