"""Groups of ranks: threads of this process, or processes of their own."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import leeway


class Group:
    """Ranks as threads, connected inside this process."""

    def __init__(self, size, **options):
        self.communicators = leeway.Communicator.create_inproc(size, **options)
        self._threads = concurrent.futures.ThreadPoolExecutor(size)

    def run(self, function):
        """function(communicator) on all ranks at once: their results by rank; the first error is raised."""
        futures = [self._threads.submit(function, communicator) for communicator in self.communicators]
        concurrent.futures.wait(futures)
        return [future.result() for future in futures]

    def errors(self, function):
        """As run(), but what each rank raised, None where it did not."""
        futures = [self._threads.submit(function, communicator) for communicator in self.communicators]
        return [future.exception() for future in futures]

    def close(self):
        self.run(lambda communicator: communicator.close())
        self._threads.shutdown()


@pytest.fixture
def group():
    made = []

    def make(size, **options):
        made.append(Group(size, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def start_environment():
    """environment(NAME=value, ...): this process's, without LEEWAY_* variables, for a process that finds the package."""

    def make(**variables):
        # Unbuffered, words of ranks that print at once would mix.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("LEEWAY_") and name != "PYTHONUNBUFFERED"}
        environment.update(PYTHONPATH=str(pathlib.Path(leeway.__file__).parents[1]), **variables)
        return environment

    return make


@pytest.fixture
def start_ranks(tmp_path, start_environment):
    """start(source, size): a Python process for each rank, which meet in a folder; gives the processes."""
    started = []

    def start(source, size, **variables):
        script = tmp_path / f"ranks{len(started)}.py"
        script.write_text(textwrap.dedent(source))
        environment = start_environment(LEEWAY_WORLD_SIZE=str(size), MEETING=str(tmp_path / f"meeting{len(started)}"),
                                        **variables)
        started.append([subprocess.Popen([sys.executable, str(script)], env={**environment, "LEEWAY_RANK": str(rank)},
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                        for rank in range(size)])
        return started[-1]

    yield start
    for ranks in started:
        for rank in ranks:
            rank.kill()
            rank.wait()
