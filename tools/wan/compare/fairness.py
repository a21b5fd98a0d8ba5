"""Leeway and TCP on one line (tools/compare_wan --fairness): how they share rank 0's uplink.

Ranks 0 to 7 run all-reduces without end; rank 0 also sends TCP flows to rank 8, which is no member. All of rank 0's packets share its uplink;
the other ranks' uplinks are their own, so rank 0's share of its line sets the pace of all. TCP's flows run before alone, for the same
time. Random loss, where there is any, lies between rank 0 and the other members alone: TCP does not meet it.
"""

import json
import statistics
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from contenders import LAB, LEEWAY
from lines import Line

MEMBERS = 8
SECONDS = 15  # that TCP is measured; Leeway has settled before
SETTLE = 3
SIZE = 8 * 1024 * 1024


@dataclass(frozen=True)
class Case:
    """`control` of Leeway beside `flows` TCP flows of `tcp`."""

    control: str
    tcp: str
    flows: int
    queue_ms: float
    own_loss_percent: float = 0.0
    rate_mbps: float = 100.0
    rtt_ms: float = 20.0

    @property
    def name(self):
        loss = f", {self.own_loss_percent:g} % loss of its own" if self.own_loss_percent else ""
        return f"{self.control} beside {self.flows} {self.tcp.upper()}, {self.rate_mbps:g} Mb/s, {self.rtt_ms:g} ms, queue {self.queue_ms:g} ms{loss}"

    @property
    def fair_mbps(self):
        return self.rate_mbps / (self.flows + 1)


CASES = [
    *(Case("wan", "cubic", 4, queue_ms) for queue_ms in (4, 20)),
    *(Case("wan", "cubic", 4, queue_ms, 10) for queue_ms in (4, 20)),
    *(Case("wan", "bbr", 4, queue_ms) for queue_ms in (4, 20)),
    *(Case("scavenger", "cubic", 1, queue_ms) for queue_ms in (4, 20)),
]


def script(case, folder, with_leeway):
    """Members run until the TCP flows are over. Rank 0 notes what its device sent meanwhile, TCP's packets among it."""
    perf = (f"LEEWAY_WORLD_SIZE={MEMBERS} LEEWAY_TRANSPORT=udp LEEWAY_CONGESTION={case.control} {LEEWAY} perf --op all_reduce "
            f"--min {SIZE} --max {SIZE} --iters 100000 --warmup 0 --check 0 --deadline-ms 60000 >/dev/null 2>&1 & member=$!")
    perf = perf if with_leeway else "sleep 1000 & member=$!"
    end = f"while [ ! -e {folder}/over ]; do sleep 0.2; done; kill $member; wait $member; true"
    sent = """awk 'NR > 2 && $1 != "lo:" { sum += $10 } END { printf "%.0f\\n", sum }' /proc/self/net/dev"""
    # A busy machine starts members slowly.
    met = f"while [ $({sent}) -lt 2000000 ]; do sleep 0.2; done; " if with_leeway else ""
    flows = (f"{met}sleep {SETTLE}; {sent} >{folder}/sent; iperf3 -c $(echo $WAN_LAB_ADDRESSES | cut -d, -f{MEMBERS + 1}) -t {SECONDS} "
             f"-P {case.flows} -C {case.tcp} -J >{folder}/tcp.json; {sent} >>{folder}/sent; touch {folder}/over")
    return (f"case $RANK in 0) {perf}; {flows}; {end};; {MEMBERS}) timeout {3 * SECONDS + 60} iperf3 -s -1 >/dev/null;; "
            f"*) {perf}; {end};; esac")


def lab_words(case, folder, seed, with_leeway):
    line = Line(case.rate_mbps, case.rtt_ms, case.queue_ms)
    words = [LAB, "--ranks", MEMBERS + 1]
    if case.own_loss_percent:
        words += ["--link", f'tier: path from: "0" to: "1-{MEMBERS - 1}" loss {{ random {{ p: {case.own_loss_percent / 100:g} }} }}']
    words += [*line.lab_options, "--seed", seed, "--quiet", "--json", f"{folder}/lab.json"]
    return [str(word) for word in [*words, "--", "sh", "-c", script(case, folder, with_leeway)]]


def tcp_of(text):
    end = json.loads(text)["end"]
    segments = max(1, end["sum_sent"]["bytes"] / 1448)
    return {"mbps": end["sum_received"]["bits_per_second"] / 1e6 * 1500 / 1448, "loss": end["sum_sent"].get("retransmits", 0) / segments,
            "sent_mbps": end["sum_sent"]["bytes"] * 8 / SECONDS / 1e6 * 1500 / 1448}


def run_once(case, seed, with_leeway, limit_s):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(lab_words(case, folder, seed, with_leeway), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=limit_s)
        if done.returncode != 0:
            raise RuntimeError(f"{case.name}: exit status {done.returncode}\n{done.stdout.strip()}")
        kept_up = json.loads((Path(folder) / "lab.json").read_text())["precision"]["kept_up"]
        tcp = tcp_of((Path(folder) / "tcp.json").read_text())
        before, after = map(int, (Path(folder) / "sent").read_text().split())
        ours = (after - before) * 8 / SECONDS / 1e6 - tcp.pop("sent_mbps")
        return {"leeway_mbps": ours if with_leeway else 0.0, "kept_up": kept_up, **tcp}


def measure(rounds, limit_s, say, cases=None):
    """[{case, alone: [run, ...], beside: [run, ...]}], in turn."""
    results = [{"case": case, "alone": [], "beside": []} for case in cases or CASES]
    for seed in range(1, rounds + 1):
        for result in results:
            for kind in ("alone", "beside"):
                say(f"round {seed}: {result['case'].name}, {kind}")
                result[kind].append(run_once(result["case"], seed, kind == "beside", limit_s))
    return results


def cell(result):
    def median(kind, key):
        return statistics.median(run[key] for run in result[kind])

    case = result["case"]
    return {"leeway": median("beside", "leeway_mbps") / case.fair_mbps, "tcp": median("beside", "mbps") / case.flows / case.fair_mbps,
            "tcp_kept": median("beside", "mbps") / median("alone", "mbps"), "leeway_part": median("beside", "leeway_mbps") / case.rate_mbps,
            "tcp_loss": median("beside", "loss"), "tcp_loss_alone": median("alone", "loss"),
            "kept_up": sum(run["kept_up"] for run in result["beside"]) * 2 > len(result["beside"])}


def text_of(results):
    rows = [["case", "Leeway, of a fair share", "a TCP flow, of a fair share", "TCP, of what it has alone", "TCP's repeats (alone)"]]
    for result in results:
        value = cell(result)
        mark = "" if value["kept_up"] else "*"
        rows.append([result["case"].name, f"{value['leeway']:.2f}{mark}", f"{value['tcp']:.2f}", f"{value['tcp_kept']:.2f}",
                     f"{100 * value['tcp_loss']:.2f} % ({100 * value['tcp_loss_alone']:.2f})"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def laid_out(row):
        return "| " + " | ".join(f"{text:<{width}}" for text, width in zip(row, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([laid_out(rows[0]), rule, *map(laid_out, rows[1:])])


def json_of(results):
    return [{"case": asdict(result["case"]), "medians": cell(result), "alone": result["alone"], "beside": result["beside"]}
            for result in results]


def read(rows):
    return [{"case": Case(**row["case"]), "alone": row["alone"], "beside": row["beside"]} for row in rows]
