"""src/rendezvous/README.md lists the variables that the library reads, in their order and in their words."""

import re
import sys
from pathlib import Path

ROOM = Path(__file__).resolve().parents[3] / "src" / "rendezvous"
LITERAL = r'"(?:[^"\\]|\\.)*"'


def in_code():
    text = (ROOM / "environment.cc").read_text()
    begin = text.index("kVariables = {{")
    table = text[begin:text.index("}};", begin)]
    return [[re.sub(r'"\s*"', "", field).strip()[1:-1] for field in re.split(r",\s*(?=\")", row)]
            for row in re.findall(r"\{((?:" + LITERAL + r"|,|\s)+)\}", table)]


def in_document():
    rows = []
    text = (ROOM / "README.md").read_text()
    for line in text[text.index("## Variables"):].splitlines():
        if line.startswith("| `LEEWAY_"):
            rows.append([cell.strip("` ") for cell in line.strip("| ").split(" | ")])
    return [row for row in rows if len(row) == 3]


if in_code() != in_document() or not in_code():
    for row in in_code():
        if row not in in_document():
            print("not in README.md as in environment.cc:", row)
    sys.exit("src/rendezvous/README.md, section Variables, differs from environment.cc")
