"""The `leeway` command: in the wheel beside this file, else on PATH."""

import os
import pathlib
import shutil

from ._core import UnavailableError


def path():
    """Returns the path of the command. Raises UnavailableError, which says how to get it."""
    beside = pathlib.Path(__file__).with_name("bin") / "leeway"
    for candidate in (os.environ.get("LEEWAY_COMMAND"), beside, shutil.which("leeway")):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise UnavailableError("the leeway command is neither in this package nor on PATH: install the wheel "
                           "(pip install .), the package leeway-tools, or name it in LEEWAY_COMMAND")
