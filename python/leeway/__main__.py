"""`python -m leeway doctor`, `perf`, `train`, `sim`, ...: the `leeway` command. `demo` is the package's own."""

import os
import sys

from . import Error, _command


def main():
    if sys.argv[1:2] == ["demo"]:
        from . import demo

        return demo.main(sys.argv[2:])
    try:
        command = _command.path()
    except Error as error:
        sys.exit(f"leeway: {error}")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
