"""docs/pytorch.md: its programs run, and the names in it exist."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "pytorch.md"


@pytest.mark.parametrize("faults", ["", "loss=0.1"])
def test_the_blocks_of_the_page_run_in_order(torchrun, faults):
    blocks = re.findall(r"^<!-- run -->\n```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    output, status = torchrun("".join(blocks), 2, **({"LEEWAY_FAULT": faults} if faults else {}))
    assert status == 0, output
    steps = re.findall(r"^step \d: lost (\S+)%, (\S+) contributors", output, re.MULTILINE)
    assert len(steps) == 4, output
    if not faults:
        assert steps == [("0.0", "2.00")] * 4, output
    else:
        assert any(float(lost) > 0 for lost, _ in steps), output


def test_its_variables_are_leeways():
    variables = set(re.findall(r"LEEWAY_[A-Z_]+", PAGE.read_text()))
    sources = "".join(path.read_text() for path in (PAGE.parents[1] / "src").rglob("*.cc"))
    assert not [name for name in variables if f'"{name}"' not in sources and f'"{name.removeprefix("LEEWAY_")}"' not in sources]
