"""`python -m leeway demo`, with a short training."""

import subprocess
import sys

import numpy as np
import pytest

from leeway import demo


def run(folder, *arguments):
    return subprocess.run([sys.executable, "-m", "leeway", "demo", *arguments], cwd=folder, capture_output=True, text=True,
                          timeout=100)


def test_it_trains_under_loss_and_draws_both_curves(tmp_path):
    (tmp_path / "report.html").write_text(demo.page([{"step": 1, "lossy": 9, "exact": 8}], [], 2, 0.1))  # of an earlier run
    done = run(tmp_path, "--ranks", "2", "--seconds", "1", "--loss", "0.2")
    assert done.returncode == 0, done.stderr
    rows = dict(line.rsplit(None, 1) for line in done.stdout.splitlines()[:-1])
    assert int(rows["steps"]) >= demo.EVERY
    # Half of what rank 0 needs is its own, which the network cannot lose.
    assert 0.01 < float(rows["packets lost on the way to rank 0"].rstrip("%")) / 100 < 0.3
    assert 1 < float(rows["perplexity with loss"]) < 64
    page = (tmp_path / "report.html").read_text()
    assert page.count("<polyline") == 2 and rows["perplexity with loss"] in page


def test_it_spoils_no_file_of_others(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    done = run(tmp_path)
    assert done.returncode == 2 and "--out" in done.stderr
    assert (tmp_path / "report.html").read_text() == "mine"


@pytest.mark.parametrize("arguments", [("--loss", "2"), ("--ranks", "1"), ("--seconds", "nan"), ("--loss", "nan")])
def test_wrong_values_are_named(tmp_path, arguments):
    done = run(tmp_path, *arguments)
    assert done.returncode == 2 and arguments[0] in done.stderr


def test_gradients_are_those_of_the_loss():
    model = demo.Model(8, width=3, hidden=5)
    windows = np.random.default_rng(3).integers(0, 8, (4, demo.CONTEXT + 1))
    model.flat = model.flat.astype(np.float64)
    gradient = model.gradient(windows)

    def loss():
        chances = model.forward(windows)[2]
        return -np.log(chances[np.arange(4), windows[:, -1]]).mean()

    for place in range(0, len(model.flat), 7):
        kept = model.flat[place]
        model.flat[place] = kept + 1e-6
        above = loss()
        model.flat[place] = kept - 1e-6
        slope = (above - loss()) / 2e-6
        model.flat[place] = kept
        assert abs(slope - gradient[place]) < 1e-6
