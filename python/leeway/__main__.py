"""`python -m leeway doctor`, `perf`, `train`, `sim`, ...: the `leeway` command."""

import os
import sys

from . import Error, _command


def main():
    try:
        command = _command.path()
    except Error as error:
        sys.exit(f"leeway: {error}")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
