"""torch's own tests of process groups (conformance.py), in a process of their own: none may fail but those named here."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

# torch reports any backend but its own as "custom" there.
EXPECTED = {"test_ddp_logging_data_cpu"}


@pytest.mark.parametrize("backend, ranks, faults, passed_min", [
    ("leeway", 2, "", 65),
    ("gloo", 2, "", 89),  # Leeway poses as Gloo, for tests that only Gloo has
    pytest.param("leeway", 4, "", 65, marks=pytest.mark.long),
    pytest.param("leeway", 2, "loss=0.05", 65, marks=pytest.mark.long),  # exact calls do not notice
    pytest.param("gloo", 4, "", 89, marks=pytest.mark.long),
    pytest.param("gloo", 2, "loss=0.05", 89, marks=pytest.mark.long),
])
def test_conformance(tmp_path, start_environment, backend, ranks, faults, passed_min):
    environment = start_environment(BACKEND=backend, WORLD_SIZE=str(ranks), TEMP_DIR=str(tmp_path), OMP_NUM_THREADS="1")
    if faults:
        environment["LEEWAY_FAULT"] = faults
    for name in ("barrier", "test_dir"):
        (tmp_path / name).mkdir()
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("conformance.py"))], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    failed = set(re.findall(r"^(?:ERROR|FAIL): (test_\w+) ", done.stdout, re.MULTILINE))
    ran, = re.findall(r"^Ran (\d+) tests", done.stdout, re.MULTILINE) or ["0"]
    skipped = re.findall(r"skipped=(\d+)", done.stdout) or ["0"]
    assert failed <= EXPECTED, done.stdout[-20_000:]
    assert int(ran) - int(skipped[-1]) - len(failed) >= passed_min, done.stdout[-2000:]
