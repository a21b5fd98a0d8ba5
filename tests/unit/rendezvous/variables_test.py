"""Variables that the code reads are the ones that the documents list, and none of them is taken for a misspelt one."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROOM = ROOT / "src" / "runtime" / "rendezvous"
LITERAL = r'"(?:[^"\\]|\\.)*"'
# As getenv("X"), os.environ["X"], environ.get("X"), ${X:-...}, "X" in a table of names.
READ = re.compile(r'(?:getenv\(|environ\[|environ\.get\(|variable\(|text\()"(LEEWAY_\w+)"|\$\{(LEEWAY_\w+):-')
PROGRAMS = ("src", "tools", "tests", "python", "deploy")


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


def read_in_the_tree():
    """Names by the files that read them, without tests that misspell them."""
    names = {}
    for folder in PROGRAMS:
        for path in (ROOT / folder).rglob("*"):
            if not path.is_file() or path.stat().st_size > 1_000_000 or "unit" in path.parts:
                continue
            for found in READ.findall(path.read_text(errors="ignore")):
                names[found[0] or found[1]] = path
    return names


def known():
    """What is not taken for a misspelt name: whole names, and beginnings."""
    text = (ROOM / "variable_names.cc").read_text()
    lists = text[text.index("kReadElsewhere = {"):text.index("meaningful_names()")]
    return [row[0] for row in in_code()] + re.findall(r'"(LEEWAY_\w+)"', lists)


def nccl_in_document():
    text = (ROOT / "src" / "interop" / "nccl" / "README.md").read_text()
    return re.findall(r"^\| `(LEEWAY_\w+)` \|", text, re.MULTILINE)


faults = [f"not in README.md as in environment.cc: {row}" for row in in_code() if row not in in_document()]
faults += [f"in README.md, and not in environment.cc: {row}" for row in in_document() if row not in in_code()]
faults += [f"{name}, which {path} reads, is not in variable_names.cc" for name, path in sorted(read_in_the_tree().items())
           if not any(name.startswith(one) for one in known())]
faults += [f"{name}, of src/interop/nccl/README.md, is not in variable_names.cc" for name in nccl_in_document() if name not in known()]
if not in_code() or not nccl_in_document() or len(read_in_the_tree()) < 10:
    faults.append("a list is empty: this test no longer finds what it compares")
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
