"""Runs scenarios in the packet-loss simulator: the library's own protocol code in virtual time.

    result = leeway.sim.run("incast.txtpb", seeds=range(1, 4), set={"ranks": 16})
    result.columns()["round_ms.p99"]          # NumPy, one entry a cell; pandas.DataFrame(result.columns()) works
    result.cells[0].settings                  # what this cell changed

Formats of scenarios: simulator/scenario/README.md. It runs the `leeway` command, in a process of its own.
"""

import dataclasses
import json
import os
import subprocess
import tempfile

from . import _command
from ._core import Error, InvalidArgumentError

__all__ = ["Cell", "Measure", "Result", "SimulationError", "run"]


class SimulationError(Error, RuntimeError):
    """The run ended with an error, or a checker found a broken invariant. `result` holds the results that exist, or None."""

    code = "simulation"

    def __init__(self, text, result=None):
        super().__init__(text)
        self.result = result


@dataclasses.dataclass(frozen=True)
class Measure:
    """Statistics of one quantity of a cell over its seeds. Names of quantities end in their unit."""

    count: int
    mean: float
    deviation: float
    standard_error: float
    min: float
    max: float


@dataclasses.dataclass(frozen=True)
class Cell:
    """Results of one cell: one combination of the values of a scenario's sweeps."""

    settings: dict  # field -> the value that the sweep set
    seeds: tuple  # first and last
    verdict: str  # "passed", "failed" or "not_applicable"
    rounds: int
    packets: int
    simulated_ms: float
    measures: dict  # name -> Measure


@dataclasses.dataclass(frozen=True)
class Result:
    """Results of all cells of a scenario."""

    name: str
    verdict: str
    trace_hash: str  # equal for equal scenario, seeds and version, on any machine
    checks: list  # one dict for each invariant, with id, title, verdict, checked, failures
    cells: list
    summary: dict  # all that the command wrote

    def columns(self, statistic="mean"):
        """Returns a dict of NumPy arrays with an entry for each cell: settings by field, and measures by name.

        statistic: "mean", "deviation", "standard_error", "min" or "max", over seeds. NaN stands for a missing measure.
        """
        import numpy

        fields = list(dict.fromkeys(name for cell in self.cells for name in cell.settings))
        measures = list(dict.fromkeys(name for cell in self.cells for name in cell.measures))
        table = {name: numpy.array([cell.settings.get(name) for cell in self.cells]) for name in fields}
        for name in measures:
            values = [getattr(cell.measures[name], statistic) if name in cell.measures else None for cell in self.cells]
            table[name] = numpy.array([float("nan") if value is None else value for value in values], float)
        return table

    def __repr__(self):
        return f"Result({self.name!r}, {self.verdict}, {len(self.cells)} cells)"


def _result(summary):
    cells = [
        Cell(
            settings=cell["settings"],
            seeds=tuple(cell["seeds"]),
            verdict=cell["verdict"],
            rounds=cell["rounds"],
            packets=cell["packets"],
            simulated_ms=cell["simulated_ms"],
            measures={name: Measure(**{field.name: measure.get(field.name) for field in dataclasses.fields(Measure)})
                      for name, measure in cell["measures"].items()},
        )
        for cell in summary["cells"]
    ]
    return Result(summary["name"], summary["verdict"], summary["trace_hash"], summary["checks"], cells, summary)


def run(scenario, *, seeds=None, set=None, full=False, jobs=None, report=None):  # noqa: A002
    """Runs a scenario over all its sweeps and seeds, and returns a Result.

    scenario: a path to a .txtpb file, or its text. seeds: a range, or (first, last). set: fields to change, as
    {"link[0].loss.random.p": 0.01}. full: the scenario's long form. jobs: runs at a time (default: one a core).
    report: a new folder for the HTML report and its pictures.

    SimulationError: the scenario is wrong (the text says where), or a checker found a broken invariant.
    KeyboardInterrupt ends the run.
    """
    text = os.fspath(scenario)
    with tempfile.TemporaryDirectory(prefix="leeway-sim-") as folder:
        if "\n" in text or "{" in text or ":" in text and not os.path.exists(text):
            path = os.path.join(folder, "scenario.txtpb")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            path = text
        summary = os.path.join(folder, "summary.json")
        command = [_command.path(), "sim", path, "--quiet", "--json", summary]
        if seeds is not None:
            command += ["--seeds", _seed_range(seeds)]
        for field, value in (set or {}).items():
            command += ["--set", f"{field}={value}"]
        if full:
            command.append("--full")
        if jobs is not None:
            command += ["--jobs", str(jobs)]
        if report is not None:
            command += ["--out", os.fspath(report)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        result = None
        if os.path.exists(summary):
            with open(summary, encoding="utf-8") as file:
                result = _result(json.load(file))
        if done.returncode != 0:
            raise SimulationError(done.stderr.strip() or f"leeway sim ended with {done.returncode}", result)
        return result


def _seed_range(seeds):
    numbers = list(seeds)
    if isinstance(seeds, range):
        if seeds.step != 1 or not numbers:
            raise InvalidArgumentError(f"seeds: {seeds} is no range of step 1 with a seed in it")
    elif len(numbers) != 2 or numbers[0] > numbers[1]:
        raise InvalidArgumentError(f"seeds: {seeds}; give range(1, 9), or (first, last)")
    return f"{numbers[0]}..{numbers[-1]}"
