"""The contenders: how a run of each is started in the laboratory, and how its result is read."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LAB = ROOT / "tools" / "wan_lab"
LEEWAY = ROOT / "build" / "release" / "bin" / "leeway"
GLOO = ROOT / "build" / "peers" / "gloo_all_reduce"
IPERF_SECONDS = 5


@dataclass
class Job:
    """What a run does; `limit_s` ends it."""

    ranks: int
    size: int
    iterations: int
    limit_s: float


@dataclass
class Contender:
    name: str
    title: str
    kind: str  # gloo, leeway or iperf3
    control: str = ""  # of TCP
    delivery: str = ""  # of leeway: which promises it is judged by
    arguments: list = field(default_factory=list)  # of leeway perf
    environment: dict = field(default_factory=dict)
    rate_share: float = 0.0  # of the line's rate, as LEEWAY_RATE; 0: none is named
    sealed: bool = False  # with a secret of the run's own

    @property
    def is_all_reduce(self):
        return self.kind != "iperf3"


def leeway(name, title, delivery, *arguments, rate_share=0.0, sealed=False, judged=True, **environment):
    words = ["--delivery", delivery, "--deadline-ms", "60000", *arguments]
    return Contender(name, title, "leeway", delivery=delivery if judged else "", arguments=words, rate_share=rate_share, sealed=sealed,
                     environment={"LEEWAY_TRANSPORT": "udp", **environment})


ALL = [
    Contender("gloo_cubic", "Gloo, TCP CUBIC", "gloo", "cubic"),
    Contender("gloo_bbr", "Gloo, TCP BBR", "gloo", "bbr"),
    leeway("exact", "Leeway exact", "exact"),
    leeway("best_effort", "Leeway best_effort", "best_effort"),
    leeway("exact_none", "Leeway exact, unpaced", "exact", LEEWAY_CONGESTION="none"),
    leeway("best_effort_none", "Leeway best_effort, unpaced", "best_effort", LEEWAY_CONGESTION="none"),
    leeway("exact_fixed", "Leeway exact, fixed", "exact", rate_share=0.95),
    leeway("exact_wan", "Leeway exact, wan", "exact", LEEWAY_CONGESTION="wan"),
    leeway("best_effort_fixed", "Leeway best_effort, fixed", "best_effort", rate_share=0.95),
    leeway("best_effort_wan", "Leeway best_effort, wan", "best_effort", LEEWAY_CONGESTION="wan"),
    leeway("exact_fixed_sealed", "Leeway exact, fixed, sealed", "exact", rate_share=0.95, sealed=True),
    leeway("exact_wan_sealed", "Leeway exact, wan, sealed", "exact", sealed=True, LEEWAY_CONGESTION="wan"),
    leeway("best_effort_fixed_sealed", "Leeway best_effort, fixed, sealed", "best_effort", rate_share=0.95, sealed=True),
    leeway("best_effort_wan_sealed", "Leeway best_effort, wan, sealed", "best_effort", sealed=True, LEEWAY_CONGESTION="wan"),
    leeway("exact_nvfp4_sealed", "Leeway exact, NVFP4, wan, sealed", "exact", "--codec", "nvfp4", sealed=True, judged=False, LEEWAY_CONGESTION="wan"),
    leeway("best_effort_nvfp4_sealed", "Leeway best_effort, NVFP4, wan, sealed", "best_effort", "--codec", "nvfp4", sealed=True, judged=False, LEEWAY_CONGESTION="wan"),
    Contender("iperf3_cubic", "one TCP flow, CUBIC", "iperf3", "cubic"),
    Contender("iperf3_bbr", "one TCP flow, BBR", "iperf3", "bbr"),
]


def command_of(contender, job, folder):
    """Returns the shell command that every rank runs. It leaves its result in folder/result.json."""
    result = Path(folder) / "result.json"
    if contender.kind == "leeway":
        words = [LEEWAY, "perf", "--op", "all_reduce", "--min", job.size, "--max", job.size, "--iters", job.iterations,
                 "--warmup", 1, "--check", 1, *contender.arguments]
        return " ".join(map(str, words)) + f" --json $([ $RANK = 0 ] && echo {result} || echo /dev/null) >/dev/null"
    if contender.kind == "gloo":
        return (f"{GLOO} --ranks {job.ranks} --rank $RANK --address $WAN_LAB_ADDRESS --store {folder}/store "
                f"--sizes {job.size} --iters {job.iterations} --warmup 1 >{folder}/rank$RANK && "
                f"{{ [ $RANK != 0 ] || cp {folder}/rank0 {result}; }}")
    server = "case $RANK in 1) iperf3 -s -1 >/dev/null;; 0) "
    client = f"iperf3 -c ${{WAN_LAB_ADDRESSES#*,}} -t {IPERF_SECONDS} -O 1 -J >{result}"
    return f"{server} sleep 0.5; {client};; esac"


def lab_words(contender, line, job, folder, seed):
    ranks = job.ranks if contender.is_all_reduce else 2
    control = ["--congctl", contender.control] if contender.control else []
    return [LAB, "--ranks", ranks, *line.lab_options, *control, "--seed", seed, "--quiet", "--json", f"{folder}/lab.json",
            "--", "sh", "-c", command_of(contender, job, folder)]


def read_result(contender, text):
    """{"ms": of one all-reduce} or {"mbps": of the flow's goodput}, and what else is worth keeping."""
    result = json.loads(text)
    if contender.kind == "iperf3":
        return {"mbps": result["end"]["sum_received"]["bits_per_second"] / 1e6}
    row = result[0] if isinstance(result, list) else result
    kept = {"ms": row["time_us_p50"] / 1e3, "ms_p99": row["time_us_p99"] / 1e3}
    return kept | {key: row[key] for key in ("loss_observed", "loss_residual") if key in row}


def read_lab(text):
    lab = json.loads(text)
    packets, precision = lab["packets"], lab["precision"]
    dropped = packets["queue_full"] + packets["queue_early"]
    return {"overflow": dropped / max(1, packets["taken"]), "kept_up": precision["kept_up"],
            "late_share": precision["late_share"], "late_p99_ms": precision["late"]["p99_ms"],
            "lab_core": precision["processor_s"] / max(1e-9, lab["seconds"])}


def run(contender, line, job, seed):
    """Makes one run. Returns {"over_limit": True} if it was ended for its time. Raises RuntimeError with its output if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "store").mkdir()
        secret = write_secret(Path(folder)) if contender.sealed else {}
        words = [str(word) for word in lab_words(contender, line, job, folder, seed)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=environment_of(contender, line) | secret)
        try:
            output = process.communicate(timeout=job.limit_s)[0]
        except subprocess.TimeoutExpired:
            process.terminate()
            process.communicate()
            return {"over_limit": True}
        except BaseException:
            process.terminate()
            process.communicate()
            raise
        if process.returncode != 0:
            raise RuntimeError(f"{contender.name} on {line.name}: exit status {process.returncode}\n{output.strip()}")
        return (read_result(contender, (Path(folder) / "result.json").read_text()) |
                read_lab((Path(folder) / "lab.json").read_text()))


def write_secret(folder):
    """Writes a secret as `leeway keygen` makes them, readable by its owner alone. Returns the variable that names it."""
    path = folder / "cluster.key"
    path.touch(mode=0o600)
    path.write_text(subprocess.run([str(LEEWAY), "keygen"], capture_output=True, text=True, check=True).stdout)
    return {"LEEWAY_SECRET_FILE": str(path)}


def environment_of(contender, line):
    rate = {"LEEWAY_RATE": str(round(contender.rate_share * line.rate_mbps * 1e6))} if contender.rate_share else {}
    return {**os.environ, **contender.environment, **rate}
