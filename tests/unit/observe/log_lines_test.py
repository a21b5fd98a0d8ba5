"""docs/wide-area.md lists every line of the log that an operator may see, and no other."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LITERAL = r'"((?:[^"\\]|\\.)*)"'
# The level, the cause, and the text: literals that follow each other.
CALL = re.compile(r'print\(\s*(?:rendezvous::)?(?:LogLevel::)?(\w+),\s*' + LITERAL + r',\s*((?:' + LITERAL + r'\s*)+)')
SILENT = {"trace", "debug"}


def plain(text):
    """A format as the document has it: what is filled in is an ellipsis."""
    text = text.replace('\\"', '"').replace("%%", "\0")
    text = re.sub(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z)?[a-zA-Z]", "…", text)
    return text.replace("\0", "%")


def printed():
    """Texts by cause."""
    found = {}
    for path in sorted((ROOT / "src").rglob("*.cc")):
        if path.name == "log.cc":
            continue
        for level, cause, texts, _ in CALL.findall(path.read_text()):
            if level not in SILENT:
                text = "".join(re.findall(LITERAL, texts))
                found.setdefault(cause, []).append(plain(text))
    return found


def documented():
    """Beginnings by cause."""
    rows = {}
    for line in (ROOT / "docs" / "wide-area.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4 and re.fullmatch(r"info|warn|error|any", cells[1]):
            rows[cells[0].strip("` ")] = re.findall(r"`([^`]+)`", cells[2])
    return rows


class LogLines(unittest.TestCase):
    def test_the_document_has_every_cause_and_no_other(self):
        self.assertEqual(sorted(documented()), sorted(printed()))

    def test_lines_begin_as_the_document_says(self):
        texts = printed()
        for cause, beginnings in documented().items():
            self.assertTrue(beginnings, cause)
            for beginning in beginnings:
                self.assertTrue(any(text.startswith(beginning) for text in texts[cause]), f"{cause}: {beginning}: {texts[cause]}")


if __name__ == "__main__":
    unittest.main()
