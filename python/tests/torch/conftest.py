"""Ranks of torch.distributed for the tests."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]

# Torch is imported once, and ranks are forked before any thread exists: a second instead of six.
FORK = """
import os, sys, torch, torch.distributed as dist, torch.utils.data, leeway, leeway.torch as lt
source, size, meeting = sys.argv[1], int(sys.argv[2]), sys.argv[3]
code = compile(open(source).read(), source, "exec")
torch.set_num_threads(1)
children = []
for rank in range(size):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            dist.init_process_group(os.environ["BACKEND"], init_method="file://" + meeting, rank=rank, world_size=size)
            exec(code, {"__name__": "__main__", "rank": rank, "size": size, "dist": dist, "torch": torch, "leeway": leeway,
                        "lt": lt, "os": os})
            dist.destroy_process_group()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


@pytest.fixture
def torchrun(tmp_path, start_environment):
    """run(source, ranks): what the ranks print under torchrun, and its exit status."""

    def run(source, ranks=2, *arguments, **variables):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--rdzv-backend=c10d",
                               "--rdzv-endpoint=127.0.0.1:0", *arguments, str(script)],
                              env=start_environment(OMP_NUM_THREADS="1", **variables), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=180)
        return done.stdout, done.returncode

    return run


@pytest.fixture
def forked(tmp_path, start_environment):
    """run(source, ranks, backend): output and exit status of ranks with a default group, in which rank, size, dist, torch,
    leeway, lt and os are defined."""

    def run(source, ranks=2, backend="gloo", timeout=120, **variables):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        done = subprocess.run([sys.executable, "-c", FORK, str(script), str(ranks), str(tmp_path / "meeting")],
                              env=start_environment(OMP_NUM_THREADS="1", BACKEND=backend, **variables), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
        (tmp_path / "meeting").unlink(missing_ok=True)
        return done.stdout, done.returncode

    return run
