import pytest

import leeway
import leeway.sim

SCENARIO = """
name: "two ranks"
topology { star { ranks: 2 } }
"""


@pytest.fixture(scope="module")
def scenarios(pytestconfig):
    return pytestconfig.rootpath / "simulator" / "scenarios"


def test_a_scenario_becomes_a_table(scenarios):
    result = leeway.sim.run(scenarios / "incast.txtpb", seeds=range(1, 3),
                            set={"rounds": 2, "ranks": 8}, jobs=1)
    columns = result.columns()
    assert result.verdict == "passed" and len(result.cells) == len(columns["round_ms.p50"]) > 1
    assert (columns["round_ms.p50"] > 0).all() and "operation.window_bytes" in columns
    assert result.cells[0].seeds == (1, 2) and result.cells[0].measures["round_ms.p50"].count == 2
    again = leeway.sim.run(scenarios / "incast.txtpb", seeds=(1, 2), set={"rounds": 2, "ranks": 8}, jobs=1)
    assert again.trace_hash == result.trace_hash


def test_a_wrong_scenario_says_where(scenarios):
    with pytest.raises(leeway.sim.SimulationError, match="nonsense"):
        leeway.sim.run('nonsense { field: 1 }')
    with pytest.raises(leeway.sim.SimulationError, match="no_such_field"):
        leeway.sim.run(scenarios / "incast.txtpb", set={"no_such_field": 1})
    with pytest.raises(leeway.InvalidArgumentError, match="range"):
        leeway.sim.run(scenarios / "incast.txtpb", seeds=range(1, 9, 2))


def test_without_the_command(monkeypatch):
    monkeypatch.setenv("LEEWAY_COMMAND", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(leeway.UnavailableError, match="leeway-tools"):
        leeway.sim.run("name: 'x'")
