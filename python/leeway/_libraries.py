"""Says which shared libraries this machine lacks, and how to get them. Imported only if the import of the extension failed."""

import pathlib
import re
import subprocess

# Beginning of a library's name -> its package in Debian 12, and the CMake option that leaves it out.
PACKAGES = {
    "libprotobuf": ("libprotobuf32", None),
    "libspdlog": ("libspdlog1.10", None),
    "libfmt": ("libfmt9", None),
    "libssl": ("libssl3", None),
    "libcrypto": ("libssl3", None),
    "libhwy": ("libhwy1", None),
    "libisal": ("libisal2", None),
    "libibverbs": ("libibverbs1", "LEEWAY_WITH_VERBS"),
    "librdmacm": ("librdmacm1", "LEEWAY_WITH_VERBS"),
    "libuc": ("libucx0", "LEEWAY_WITH_UCX"),
    "libprometheus-cpp": ("libprometheus-cpp-core1.0", "LEEWAY_WITH_METRICS"),
}


def missing(error):
    """Returns the names of the libraries that the loader does not find: all of them, or the one that `error` names."""
    folder = pathlib.Path(__file__).parent
    names = re.findall(r"(lib[^\s:/]+\.so[.\d]*): cannot open shared object file", str(error))
    for file in [*folder.glob("libleeway.so*"), *folder.glob("_core*.so")] if names else []:
        try:
            listing = subprocess.run(["ldd", str(file)], capture_output=True, text=True, timeout=10, check=False).stdout
        except (OSError, subprocess.SubprocessError):
            break  # without ldd the loader's own message must do
        names += re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)
    return list(dict.fromkeys(names))


def explain(error):
    """Returns the text of the ImportError that users see in place of the loader's."""
    names = missing(error)
    if not names:
        return f"leeway's extension cannot be loaded: {error}"
    known = [known for name in names for start, known in PACKAGES.items() if name.startswith(start)]
    text = f"leeway needs {', '.join(names)}, which this machine does not have."
    packages = list(dict.fromkeys(package for package, _ in known))
    if packages:
        text += f" On Debian 12: apt-get install {' '.join(packages)}."
    options = list(dict.fromkeys(option for _, option in known if option))
    leave_out = "".join(f" -C cmake.define.{option}=OFF" for option in options)
    return f"{text} Or build leeway on this machine, in its sources: pip install .{leave_out}"
