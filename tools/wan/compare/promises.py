"""What Leeway promises on the standard lines, against what was measured (tools/compare_wan --check)."""

from dataclasses import dataclass

from lines import BYTES
from table import cell

RANKS = 4
OVERFLOW_MAX = 0.02  # share of its packets that its own sending may drop, where no queue is as deep as a round trip
# Bounds in units of the time on the wire plus two round trips, at 100 Mb/s.
SLOW_LINE_FACTOR = {"exact": 1.25, "best_effort": 1.15}
# Leeway of November 2026, without congestion control, at 500 Mb/s, 20 ms, a queue of 50 ms: ms by loss in percent.
BEFORE_MS = {"exact": {0: 186, 1: 283, 10: 355}, "best_effort": {0: 168, 0.1: 191, 1: 220, 5: 231, 10: 264}}


# Bounds in units of the time at a fixed rate, at 500 Mb/s; a queue of a tenth of the line's BDP (2 ms) allows more.
FIXED_FACTOR = 1.10
FIXED_FACTOR_SHORT = 1.25
# Beside TCP: Leeway's part of a fair share, and what TCP's loss may grow by; what CUBIC keeps of a fair share where 10 % of our
# packets alone are lost; scavenger's part of the line, and what CUBIC keeps of what it has alone.
SHARE = (0.5, 1.5)
TCP_LOSS_MORE = 0.01
TCP_SHARE_NOISY = 0.3
SCAVENGER_PART = 0.1
TCP_KEPT = 0.9


@dataclass
class Promise:
    text: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def kept(self):
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def of_cell(contender, line, value, job):
    title = f"{contender.title}, {line.name}"
    if value == "over":
        yield Promise(f"{title}: seconds of a run", float("inf"), job.limit_s)
    elif line.rate_mbps == 100:
        wire_ms = line.serial_ms(job.ranks, job.size) + 2 * line.rtt_ms
        yield Promise(f"{title}: time / (wire + 2 round trips)", value["ms"] / wire_ms, SLOW_LINE_FACTOR[contender.delivery])
        if line.queue_ms < line.rtt_ms:
            yield Promise(f"{title}: share dropped by full queues", value["overflow"], OVERFLOW_MAX)
    elif (line.rate_mbps, line.rtt_ms, line.queue_ms, line.burst) == (500, 20, 50, 0):
        before_ms = BEFORE_MS[contender.delivery].get(line.loss_percent)
        if before_ms is not None:
            yield Promise(f"{title}: ms", value["ms"], before_ms)


def all_of(results, contenders, job):
    """Yields all promises. There are none for another tensor or another number of ranks than the standard ones."""
    if (job.ranks, job.size) != (RANKS, BYTES):
        return
    for line, runs in results.items():
        for contender in contenders:
            value = cell(runs.get(contender.name, []))
            if contender.delivery and value is not None:
                yield from of_cell(contender, line, value, job)
        yield from beside_fixed(line, runs, contenders)


def beside_fixed(line, runs, contenders):
    """Compares contenders that adapt their rate with the same ones at a rate that the user knows."""
    by_name = {contender.name: cell(runs.get(contender.name, [])) for contender in contenders}
    for contender in contenders:
        value, fixed = by_name[contender.name], by_name.get(contender.name.replace("_wan", "_fixed"))
        if "_wan" not in contender.name or not isinstance(value, dict) or not isinstance(fixed, dict) or line.rate_mbps != 500:
            continue
        bound = FIXED_FACTOR_SHORT if line.queue_ms < line.rtt_ms / 2 else FIXED_FACTOR
        yield Promise(f"{contender.title}, {line.name}: time / that of fixed", value["ms"] / fixed["ms"], bound)


def of_fairness(result, value):
    case = result["case"]
    if case.control == "scavenger":
        yield Promise(f"{case.name}: Leeway's part of the line", value["leeway_part"], SCAVENGER_PART)
        yield Promise(f"{case.name}: TCP over what it has alone", value["tcp_kept"], TCP_KEPT, at_least=True)
    elif case.tcp == "cubic" and case.own_loss_percent:
        yield Promise(f"{case.name}: a TCP flow over its fair share", value["tcp"], TCP_SHARE_NOISY, at_least=True)
    elif case.tcp == "cubic":
        yield Promise(f"{case.name}: Leeway over its fair share", value["leeway"], SHARE[0], at_least=True)
        yield Promise(f"{case.name}: Leeway over its fair share", value["leeway"], SHARE[1])
        yield Promise(f"{case.name}: TCP's repeats, more than alone", value["tcp_loss"] - value["tcp_loss_alone"], TCP_LOSS_MORE)


def text_of(promises):
    lines = [f"  {'pass ' if one.kept else 'SHORT'}  {one.value:8.3f} {'>=' if one.at_least else '<='} {one.bound:<5g} {one.text}"
             for one in promises]
    return "\n".join(["Promised", *lines])
