"""What the wheel carries, what its libraries show to others in the process, and what an import says where something is missing."""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import zipfile

import pytest

import leeway
from leeway import _libraries

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(leeway.__file__).parents[2]
PACKAGE = pathlib.Path(leeway.__file__).parent


def python(source, *paths, check=True, **variables):
    """Runs source in an isolated Python that finds packages in `paths` first."""
    prelude = f"import sys; sys.path[:0] = {[str(path) for path in paths]}\n"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEEWAY_")}
    return subprocess.run([sys.executable, "-I", "-c", prelude + source], env={**environment, **variables}, capture_output=True,
                          text=True, timeout=120, check=check)


def symbols(file):
    """Names that a library shows to others."""
    if not shutil.which("nm"):
        pytest.skip("nm is not installed (Debian: binutils)")
    listing = subprocess.run(["nm", "-D", "--defined-only", str(file)], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1].split("@")[0] for line in listing.splitlines() if line.split()[-2] != "A"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package as the wheel has it."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip(f"{BUILD} is no build tree of Leeway")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", str(BUILD), "--component", "python", "--prefix", str(folder), "--strip"],
                   stdout=subprocess.DEVNULL, check=True)
    shutil.copytree(ROOT / "python" / "leeway", folder / "leeway", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def assert_package(names):
    """Of a wheel's files, without its metadata."""
    extensions = [name for name in names if ".so" in name]
    assert sum("libleeway.so" in name for name in extensions) == 1  # one engine
    assert sum("_core." in name and name.endswith(".so") for name in extensions) == 1
    for name in ("leeway/__init__.py", "leeway/py.typed", "leeway/_core.pyi", "leeway/bin/leeway", "leeway/sim.py",
                 "leeway/torch/__init__.py"):
        assert name in names
    strange = [name for name in names if not re.fullmatch(
        r"leeway/(torch/)?(\w+\.py|py\.typed|_core\.pyi|libleeway\.so\.\d+|_(core|c10d_\d+_\d+)\.[\w-]+\.so|bin/leeway)", name)]
    assert not strange, strange


def test_what_is_installed(installed):
    files = [path for path in installed.rglob("*") if path.is_file()]
    assert_package([str(path.relative_to(installed)) for path in files])
    assert sum(path.stat().st_size for path in files) < 40e6
    done = python("import leeway, os, leeway._command as c; print(os.path.dirname(leeway.__file__)); print(c.path());"
                  "print([line.split()[-1] for line in open('/proc/self/maps') if 'libleeway' in line][0])", installed)
    assert done.stdout.split() == [str(installed / "leeway"), str(installed / "leeway/bin/leeway"),
                                   str(installed / "leeway" / next((installed / "leeway").glob("libleeway.so*")).name)]
    assert leeway.__version__ in subprocess.run([str(installed / "leeway/bin/leeway"), "--version"], capture_output=True,
                                                text=True, check=True).stdout


def test_one_version():
    assert f"project(leeway VERSION {leeway.__version__} " in (ROOT / "CMakeLists.txt").read_text()
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


def test_libraries_show_leeways_names_only():
    library, = {line.split()[-1] for line in open("/proc/self/maps") if "libleeway.so" in line}
    strange = [name for name in symbols(library) if not re.match(r"leeway_|_Z(N|NK|TVN|TIN|TSN)6leeway2v0", name)]
    assert not strange, strange
    core, = PACKAGE.glob("_core*.so")
    assert symbols(core) == ["PyInit__core"]
    for extension in (PACKAGE / "torch").glob("_c10d*.so"):  # torch's own inline functions, as every extension of torch
        strange = [name for name in symbols(extension) if re.match("_ZT?[A-Z]*N?K?(6leeway|6google|6spdlog|3fmt|4asio)", name)]
        assert not strange, strange


def test_dependencies_stay_out_of_the_global_scope():
    """Another extension never gets our protobuf, fmt or spdlog in place of its own."""
    done = python(r"""
import ctypes, leeway, subprocess
process = ctypes.CDLL(None)
for part in ("libprotobuf", "libspdlog", "libfmt", "libleeway"):
    files = {line.split()[-1] for line in open("/proc/self/maps") if "/" + part in line}
    assert files, part
    for file in files:
        names = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True).stdout.split("\n")
        names = [line.split()[-1].split("@")[0] for line in names if " T " in line]
        assert len(names) > 20 or not names, (file, names)
        leaked = [name for name in names if hasattr(process, name)]
        assert not leaked, (file, leaked[:5])
""", PACKAGE.parent, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first, second", [("leeway", "onnx"), ("onnx", "leeway")])
def test_beside_another_protobuf(first, second):
    """onnx carries a protobuf of another version. Both write and read messages; ranks meet by leeway's."""
    pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx (18 MB)")
    done = python(f"""
import {first}, {second}
import concurrent.futures, numpy, onnx, leeway
from onnx import TensorProto, helper
server = leeway.TcpRendezvous.serve("127.0.0.1:0")
def rank(r):
    with leeway.Communicator.create(rank=r, world_size=2, store=server, join_timeout="20s") as comm:
        for _ in range(20):
            value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1000])
            graph = helper.make_graph([helper.make_node("Relu", ["x"], ["x2"])], "graph" * 100, [value], [])
            model = onnx.load_model_from_string(helper.make_model(graph).SerializeToString())
            onnx.checker.check_model(helper.make_model(helper.make_graph([], "g", [value], [value])))
            assert model.graph.name == "graph" * 100
            ones = numpy.ones(1000, numpy.float32)
            comm.all_reduce(ones)
            assert (ones == 2).all()
    return True
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    assert list(threads.map(rank, range(2))) == [True, True]
""", PACKAGE.parent, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_library_is_named(installed, tmp_path):
    """The loader says the first one only, and no word of what to do."""
    shutil.copytree(installed, tmp_path / "broken")
    library, = (tmp_path / "broken" / "leeway").glob("libleeway.so*")
    data = library.read_bytes()
    assert data.count(b"\0libspdlog.so.") == 1
    library.write_bytes(data.replace(b"\0libspdlog.so.", b"\0libspdlox.so."))
    done = python("import leeway", tmp_path / "broken", check=False)
    assert re.search(r"ImportError: leeway needs libspdlox\.so\.\S+, which this machine does not have\. .*pip install \.",
                     done.stderr), done.stderr


def test_what_to_install():
    error = ImportError("libucp.so.0: cannot open shared object file: No such file or directory")
    text = _libraries.explain(error)
    assert "apt-get install libucx0" in text and "-C cmake.define.LEEWAY_WITH_UCX=OFF" in text
    assert "undefined symbol: x" in _libraries.explain(ImportError("undefined symbol: x"))


def test_without_torch(installed):
    done = python("""
import sys
sys.modules["torch"] = None
import leeway, leeway.torch
""", installed, check=False)
    assert "leeway.torch needs PyTorch 2.9 or later" in done.stderr and "pip install" in done.stderr, done.stderr


def test_import_is_quick():
    source = "import time; begun = time.perf_counter(); import leeway; print(time.perf_counter() - begun)"
    seconds = statistics.median(float(python(source, PACKAGE.parent).stdout) for _ in range(5))
    assert seconds < 0.3


@pytest.mark.long
def test_wheel_of_the_source_distribution(tmp_path):
    """pip builds a wheel of it, and a fresh environment imports that. Minutes, unless a compiler cache has the objects."""
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    made = subprocess.run([sys.executable, "-c", "import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))",
                           str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
    with tarfile.open(tmp_path / made) as archive:
        assert sum(member.size for member in archive) < 12e6
        archive.extractall(tmp_path)
    sources = tmp_path / made[:-len(".tar.gz")]
    assert not (sources / "build").exists()
    # The compiler's name is part of a cache's key; CMake's own choice is what other builds here have.
    subprocess.run([sys.executable, "-m", "pip", "-q", "wheel", "--no-build-isolation", "--no-deps", "-w", str(tmp_path), "."],
                   cwd=sources, env={**os.environ, "CXX": "c++"}, check=True)
    wheel, = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert_package([name for name in archive.namelist() if ".dist-info/" not in name])
    assert f"leeway-{leeway.__version__}-" in wheel.name
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    fresh = tmp_path / "venv" / "bin" / "python"
    subprocess.run([str(fresh), "-m", "pip", "-q", "install", "--disable-pip-version-check", str(wheel)], check=True)
    source = "import leeway; c = leeway.Communicator.create_inproc(1)[0]; print(leeway.__version__); c.close()"
    assert subprocess.run([str(fresh), "-I", "-c", source], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip() == leeway.__version__
    for command in ([str(fresh), "-m", "leeway", "--version"], [str(tmp_path / "venv" / "bin" / "leeway"), "--version"]):
        assert leeway.__version__ in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
