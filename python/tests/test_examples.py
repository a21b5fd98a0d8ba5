"""The programs of examples/python end well, and print what they promise."""

import pathlib
import re
import socket
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"


@pytest.mark.parametrize("name, ranks, faults, says", [
    ("average", 2, "loss=0.1,seed=2", r"step 4: mean (1\.00|0\.99)\d*, lost [1-9]"),
    ("overlap", 2, "", r"8 buckets of 1 MiB"),
    ("replica", 4, "loss=0.1,seed=2", r"mean error 0\.0\d+; DriftReport\(loss=0\.\d+"),
    ("drop_compute", 2, "", r"[1-9]\d* of 96 micro-batches dropped"),
])
def test_example(start_environment, name, ranks, faults, says):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"LEEWAY_WORLD_SIZE": str(ranks), "LEEWAY_RENDEZVOUS": f"127.0.0.1:{port}"}
    if faults:
        variables["LEEWAY_FAULT"] = faults
    processes = [subprocess.Popen([sys.executable, str(EXAMPLES / f"{name}.py")],
                                  env=start_environment(LEEWAY_RANK=str(rank), **variables),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(ranks)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks, outputs
    assert re.search(says, outputs[0]), outputs


def test_each_is_short():
    assert all(len(path.read_text().splitlines()) <= 60 for path in EXAMPLES.glob("*.py"))
