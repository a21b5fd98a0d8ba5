"""The programs of examples/python end well, and print what they promise."""

import importlib.util
import json
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
    ("outer_step_jax", 2, "loss=0.1,seed=2", r"(JAX|NumPy, since JAX is missing): error 0\.0\d+, the network lost [1-9]"),
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


# name: environment, and what rank 0 prints
TORCH = {
    "ddp_hook": ({"LEEWAY_FAULT": "loss=0.1,seed=2"}, r"step 60: loss 0\.\d+, 1 bucket\(s\) in .*, lost \d"),
    "fsdp2": ({"LEEWAY_FAULT": "loss=0.1,seed=2"}, r"step 60: loss 0\.\d+, 3 reduce-scatters, lost \d"),
    "replica_optimizer": ({"LEEWAY_FAULT": "loss=0.1,seed=2"},
                          r"error 0\.\d+; rank 0 updates 18\d+ parameters of 37384; DriftReport\(loss=0\.\d"),
    "drop_compute_torch": ({}, r"[1-9]\d* of \d+ micro-batches dropped, 1\d steps for the work of 10"),
    "diloco": ({"LEEWAY_FAULT": "loss=0.1,seed=2"}, r"error 0\.\d+; an outer step sends \d\d kB for 37384 parameters"),
}

# Torch is imported once, and ranks are forked before any thread exists. They find what torchrun sets.
RANKS = """
import json, os, runpy, sys, traceback
import torch, torch._dynamo, torch.distributed, torch.utils.data, leeway.torch
torch.set_num_threads(1)
folder, examples, folder_of_examples, port = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
for name, variables in examples.items():
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            status = 1
            out = os.open(f"{folder}/{name}.{rank}", os.O_WRONLY | os.O_CREAT)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.environ.update(variables, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=str(port))
            try:
                runpy.run_path(f"{folder_of_examples}/{name}.py", run_name="__main__")
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        children.append(child)
    print(json.dumps([name, [os.waitpid(child, 0)[1] for child in children]]), flush=True)
"""


@pytest.fixture(scope="module")
def of_torch(tmp_path_factory, start_environment):
    """(exit statuses, outputs) of the examples that need torch, by name."""
    folder = tmp_path_factory.mktemp("examples")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = subprocess.run([sys.executable, "-c", RANKS, str(folder), json.dumps({name: variables for name, (variables, _) in
                           TORCH.items()}), str(EXAMPLES), str(port)], env=start_environment(OMP_NUM_THREADS="1"),
                          capture_output=True, text=True, timeout=300)
    statuses = dict(json.loads(line) for line in done.stdout.splitlines())
    return {name: (statuses.get(name, done.stderr), [(folder / f"{name}.{rank}").read_text() for rank in range(2)])
            for name in TORCH}


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is missing")
@pytest.mark.parametrize("name", TORCH)
def test_example_of_torch(of_torch, name):
    statuses, outputs = of_torch[name]
    assert statuses == [0, 0], outputs
    assert re.search(TORCH[name][1], outputs[0]), outputs


def test_each_is_short():
    assert all(len(path.read_text().splitlines()) <= 60 for path in EXAMPLES.glob("*.py"))
