"""Building what a comparison needs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def run_steps(steps, title):
    """Runs the commands one after the other; quiet unless one fails, which ends the program."""
    print(title, file=sys.stderr)
    for step in steps:
        words = [str(word) for word in step]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(words)}\n{done.stdout}")
