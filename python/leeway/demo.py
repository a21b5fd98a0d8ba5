"""`python -m leeway demo`: trains a small language model on ranks whose network loses packets, beside a loss-free twin.

Each rank is a process. It trains two models from the same start on the same batches. Gradients of the first model are
averaged by lossy calls over UDP, and faults lose part of the packets. Gradients of the twin are averaged exactly, and
nothing is lost. At the end a table says what the loss cost, and a page has the curves.
"""

import argparse
import html
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import leeway

CONTEXT = 10  # characters from which the model guesses the next one
EVERY = 25    # steps between two measurements
MARK = "<!-- made by python -m leeway demo -->"


def corpus():
    """English text that every Python has: (training, held out), as numbers of characters, and how many there are."""
    try:
        from pydoc_data.topics import topics
    except ImportError:  # some distributions leave it out
        raise SystemExit("leeway demo: Python's own help texts (pydoc_data) are missing; install all of Python") from None
    text = " ".join(" ".join(topics[name].split()) for name in sorted(topics))
    letters = sorted(set(text), key=lambda one: (-text.count(one), one))[:64]
    number = {letter: i for i, letter in enumerate(letters)}
    data = np.array([number[one] for one in text if one in number], np.int64)
    cut = len(data) * 9 // 10
    return data[:cut], data[cut:], len(letters)


class Model:
    """Embeddings of the last CONTEXT characters, a hidden layer, a softmax; Adam. All parameters lie in one vector."""

    def __init__(self, letters, width=12, hidden=160):
        self.shapes = [(letters, width), (CONTEXT * width, hidden), (hidden,), (hidden, letters), (letters,)]
        sizes = [math.prod(shape) for shape in self.shapes]
        self.ends = np.cumsum(sizes)
        rng = np.random.default_rng(1)
        self.flat = np.concatenate([rng.standard_normal(size) * scale for size, scale in
                                    zip(sizes, [1, (CONTEXT * width) ** -0.5, 0, hidden ** -0.5, 0])]).astype(np.float32)
        self.mean = np.zeros_like(self.flat)
        self.square = np.zeros_like(self.flat)
        self.steps = 0

    def parts(self, vector):
        return [vector[end - math.prod(shape):end].reshape(shape) for shape, end in zip(self.shapes, self.ends)]

    def forward(self, windows):
        table, w1, b1, w2, b2 = self.parts(self.flat)
        inputs = table[windows[:, :-1]].reshape(len(windows), -1)
        hidden = np.tanh(inputs @ w1 + b1)
        logits = hidden @ w2 + b2
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        return inputs, hidden, chances

    def perplexity(self, windows):
        chances = self.forward(windows)[2]
        return float(np.exp(-np.log(chances[np.arange(len(windows)), windows[:, -1]] + 1e-9).mean()))

    def gradient(self, windows):
        """Gradient of the mean cross entropy, as one vector like `flat`."""
        inputs, hidden, error = self.forward(windows)
        error[np.arange(len(windows)), windows[:, -1]] -= 1
        error /= len(windows)
        _, w1, _, w2, _ = self.parts(self.flat)
        flat = np.zeros_like(self.flat)
        table, d_w1, d_b1, d_w2, d_b2 = self.parts(flat)
        d_w2[:], d_b2[:] = hidden.T @ error, error.sum(axis=0)
        inner = error @ w2.T * (1 - hidden ** 2)
        d_w1[:], d_b1[:] = inputs.T @ inner, inner.sum(axis=0)
        np.add.at(table, windows[:, :-1].ravel(), (inner @ w1.T).reshape(-1, table.shape[1]))
        return flat

    def step(self, gradient, rate):
        """Adam (Kingma and Ba 2015), beta 0.9 and 0.99."""
        self.steps += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.01 * (gradient ** 2 - self.square)
        scale = rate * math.sqrt(1 - 0.99 ** self.steps) / (1 - 0.9 ** self.steps)
        self.flat -= scale * self.mean / (np.sqrt(self.square) + 1e-8)


def windows_of(data, rng, count):
    starts = rng.integers(0, len(data) - CONTEXT, count)
    return data[starts[:, None] + np.arange(CONTEXT + 1)]


def train(rank, size, loss, seconds, meeting):
    """One rank. Rank 0 prints a line of JSON for each measurement."""
    training, held_out, letters = corpus()
    tests = windows_of(held_out, np.random.default_rng(2), 3000)
    batches = np.random.default_rng(100 + rank)
    common = {"rank": rank, "world_size": size, "transport": "udp", "bind_address": "127.0.0.1"}
    lossy = leeway.CollectiveOptions(op="avg", delivery=leeway.best_effort("2s"))
    exact = leeway.CollectiveOptions(op="avg")
    with leeway.Communicator.create(store=leeway.FileRendezvous(meeting + "/lossy"), faults=f"loss={loss}",
                                    **common) as worn, \
         leeway.Communicator.create(store=leeway.FileRendezvous(meeting + "/exact"), **common) as whole:
        models = (Model(letters), Model(letters))
        missing, began, go_on, step = [], time.monotonic(), np.ones(1, np.float32), 0
        while go_on[0]:
            passed = min(1.0, (time.monotonic() - began) / seconds)
            windows = windows_of(training, batches, 96)
            rate = 4e-3 * min(1, (step + 1) / 100)
            gradients = [model.gradient(windows) for model in models]
            missing.append(worn.all_reduce(gradients[0], lossy).loss_first_pass)
            whole.all_reduce(gradients[1], exact)
            for model, gradient in zip(models, gradients):
                model.step(gradient, rate)
            step += 1
            if step % EVERY:
                continue
            # All ranks stop after the same step, which rank 0's clock decides.
            go_on[0] = passed < 1
            whole.broadcast(go_on, 0)
            if rank == 0:
                print(json.dumps({"step": step, "passed": passed, "loss": float(np.mean(missing)),
                                  "lossy": models[0].perplexity(tests), "exact": models[1].perplexity(tests)}), flush=True)
            missing = []


def curve(points, low, high, steps, color):
    """An SVG line through (step, perplexity) on a logarithmic scale, in a box of 640 x 300."""
    def at(step, value):
        return f"{640 * step / steps:.1f},{300 * (1 - math.log(value / low) / math.log(high / low)):.1f}"
    path = " ".join(at(step, value) for step, value in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'


def page(rows, table, ranks, loss):
    low = 0.95 * min(min(row["lossy"], row["exact"]) for row in rows)
    high = max(max(row["lossy"], row["exact"]) for row in rows)
    steps = rows[-1]["step"]
    ticks = [tick for tick in (2, 3, 5, 7, 10, 15, 20, 30, 50) if low < tick < high]
    grid = "".join(f'<line x1="0" x2="640" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/><text x="646" y="{y + 4:.1f}">{tick}</text>'
                   for tick in ticks for y in [300 * (1 - math.log(tick / low) / math.log(high / low))])
    lines = (curve([(row["step"], row["exact"]) for row in rows], low, high, steps, "#1f77b4") +
             curve([(row["step"], row["lossy"]) for row in rows], low, high, steps, "#d62728"))
    cells = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in table)
    return f"""<!doctype html>{MARK}
<html lang="en"><meta charset="utf-8"><title>leeway demo</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em}}svg{{width:100%;overflow:visible}}
svg text{{font-size:12px;fill:#666}}td{{padding:.2em 1.5em .2em 0}}td+td{{text-align:right}}</style>
<h1>Training on a network that loses {loss:.0%} of its packets</h1>
<p>{ranks} ranks trained a small language model twice, from the same start and on the same batches.
<b style="color:#d62728">Red</b>: what the network loses of a gradient is never sent again; the average is rescaled.
<b style="color:#1f77b4">Blue</b>: gradients are averaged exactly, and no packet is lost.</p>
<svg viewBox="-10 -10 690 340" role="img" aria-label="Perplexity on held-out text over steps">{grid}{lines}
<text x="0" y="325">step 0</text><text x="590" y="325">step {steps}</text></svg>
<p>Perplexity of the next character on held-out text, on a logarithmic scale. Lower is better.</p>
<table>{cells}</table></html>
"""


class Progress:
    """One line that is written anew on a terminal, and a line every ten seconds elsewhere."""

    def __init__(self, seconds):
        self.seconds, self.next, self.live = seconds, 0.0, sys.stderr.isatty()

    def show(self, row):
        now = row["passed"] * self.seconds
        if not self.live and now < self.next:
            return
        self.next = now + 10
        done = int(20 * row["passed"])
        start = "\r" if self.live else ""
        print(f"{start}[{'#' * done}{'.' * (20 - done)}] {now:3.0f} of {self.seconds:.0f} s, step "
              f"{row['step']}: perplexity {row['exact']:.3f} without loss, {row['lossy']:.3f} with {row['loss']:.1%} lost",
              end="" if self.live else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            print(file=sys.stderr)


def run(ranks, loss, seconds, meeting):
    """Starts the ranks. Returns the measurements of rank 0."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "leeway.demo", str(ranks), str(loss), str(seconds), meeting]
    progress, rows = Progress(seconds), []
    processes = [subprocess.Popen([*command, str(rank)], env=environment, text=True,
                                  stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL)
                 for rank in range(ranks)]
    try:
        for line in processes[0].stdout:
            rows.append(json.loads(line))
            progress.show(rows[-1])
        codes = [process.wait() for process in processes]
    finally:
        progress.end()
        for process in processes:
            process.kill()
    if any(codes):
        raise SystemExit(f"leeway demo: a rank failed (exit codes {codes}); its error is above")
    return rows


def fraction(text):
    value = float(text)
    if not 0 <= value <= 0.5:
        raise argparse.ArgumentTypeError(f"{text} is not a share between 0 and 0.5")
    return value


def main(arguments):
    parser = argparse.ArgumentParser(prog="leeway demo", description=__doc__.split("\n\n")[0].split(": ", 1)[1])
    parser.add_argument("--ranks", type=int, choices=range(2, 17), default=4, metavar="N", help="2 to 16 (default: 4)")
    parser.add_argument("--loss", type=fraction, default=0.1, help="share of packets that are lost (default: 0.1)")
    parser.add_argument("--seconds", type=float, default=45, help="how long to train (default: 45)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("report.html"), help="page with the curves")
    options = parser.parse_args(arguments)
    if not 1 <= options.seconds <= 86400:
        parser.error("--seconds: 1 to 86400")
    if options.out.exists() and MARK not in options.out.read_text(errors="replace")[:200]:
        parser.error(f"{options.out} exists and is no page of this demo: choose another with --out")
    print(f"{options.ranks} ranks train two small language models for {options.seconds:.0f} s. One averages its gradients over "
          f"UDP that\nloses {options.loss:.0%} of its packets, the other exactly and without loss.", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="leeway-demo-") as meeting:
        rows = run(options.ranks, options.loss, options.seconds, meeting)
    last, lost = rows[-1], float(np.mean([row["loss"] for row in rows]))
    table = [("steps", f"{last['step']}"),
             ("packets lost on the way to rank 0", f"{lost:.1%}"),
             ("perplexity without loss", f"{last['exact']:.3f}"),
             ("perplexity with loss", f"{last['lossy']:.3f}"),
             ("what the loss cost", f"{last['lossy'] / last['exact'] - 1:+.2%}")]
    options.out.write_text(page(rows, table, options.ranks, options.loss))
    print("\n".join(f"{name:<36}{value:>10}" for name, value in table))
    print(f"curves: {options.out}")


if __name__ == "__main__":
    size_, loss_, seconds_, meeting_, rank_ = sys.argv[1:]
    train(int(rank_), int(size_), float(loss_), float(seconds_), meeting_)
