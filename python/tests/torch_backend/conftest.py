"""Ranks of torch.distributed for the tests."""

import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]

# Torch is imported once, and ranks are forked before any thread exists: half a second instead of six. A line of standard input
# asks for a run, a line of standard output answers when all its ranks have ended.
NURSERY = """
import json, os, sys, traceback, torch, torch._dynamo, torch.distributed as dist, torch.distributed.fsdp, torch.utils.data
import torch.nn.parallel, leeway, leeway.torch as lt
torch.set_num_threads(1)

def run(rank, size, source, meeting, output, backend, variables):
    os.setpgid(0, 0)
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout = os.fdopen(out, "w", buffering=1)  # a line at once, or words of ranks mix
    os.environ.update(variables)
    dist.init_process_group(backend, init_method="file://" + meeting, rank=rank, world_size=size)
    names = {"rank": rank, "size": size, "dist": dist, "torch": torch, "leeway": leeway, "lt": lt, "os": os}
    exec(compile(open(source).read(), source, "exec"), {"__name__": "__main__", **names})
    dist.destroy_process_group()

for line in sys.stdin:
    order, children = json.loads(line), []
    for rank in range(order["size"]):
        children.append(os.fork())
        if children[-1] == 0:
            status = 1
            try:
                run(rank, **order)
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(status)
    print(json.dumps(children), flush=True)
    print(int(any([os.waitpid(child, 0)[1] for child in children])), flush=True)
"""


# torchrun starts Python with -u, so that each argument of a print is a write of its own and words of ranks mix.
LINE_AT_ONCE = "import os, sys; sys.stdout = os.fdopen(1, 'w', buffering=1)\n"


@pytest.fixture
def torchrun(tmp_path, start_environment):
    """run(source, ranks): what the ranks print under torchrun, and its exit status."""

    def run(source, ranks=2, *arguments, **variables):
        script = tmp_path / "script.py"
        script.write_text(LINE_AT_ONCE + textwrap.dedent(source))
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--rdzv-backend=c10d",
                               "--rdzv-endpoint=127.0.0.1:0", *arguments, str(script)],
                              env=start_environment(OMP_NUM_THREADS="1", **variables), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=180)
        return done.stdout, done.returncode

    return run


class Nursery:
    """A process that has imported torch, and forks ranks."""

    def __init__(self, environment):
        self.process = subprocess.Popen([sys.executable, "-c", NURSERY], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self, timeout, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        children = json.loads(self.process.stdout.readline())
        killer = threading.Timer(timeout, lambda: [_kill(child) for child in children])
        killer.start()
        status = int(self.process.stdout.readline())
        killer.cancel()
        return status

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def _kill(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


@pytest.fixture(scope="session")
def nursery():
    made = []

    def get(environment):
        if not made or made[0].process.poll() is not None:
            made[:] = [Nursery(environment)]
        return made[0]

    yield get
    for one in made:
        one.close()


@pytest.fixture
def forked(tmp_path, start_environment, nursery):
    """run(source, ranks, backend): output and exit status of ranks with a default group, in which rank, size, dist, torch,
    leeway, lt and os are defined."""
    numbers = itertools.count()

    def run(source, ranks=2, backend="gloo", timeout=120, **variables):
        folder = tmp_path / f"run{next(numbers)}"
        folder.mkdir()
        (folder / "script.py").write_text(textwrap.dedent(source))
        status = nursery(start_environment(OMP_NUM_THREADS="1")).run(
            timeout, size=ranks, source=str(folder / "script.py"), meeting=str(folder / "meeting"), output=str(folder / "output"),
            backend=backend, variables=variables)
        return (folder / "output").read_text(), status

    return run
