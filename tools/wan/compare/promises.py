"""What Leeway promises on the standard lines, against what was measured (tools/compare_wan --check)."""

from dataclasses import dataclass

from lines import BYTES
from table import cell

RANKS = 4
OVERFLOW_MAX = 0.02  # of its packets, by its own sending, where no queue is as deep as a round trip
# Times the time on the wire and two round trips, at 100 Mb/s.
SLOW_LINE_FACTOR = {"exact": 1.25, "best_effort": 1.15}
# Leeway of November 2026, without congestion control, at 500 Mb/s, 20 ms, a queue of 50 ms: ms by loss in percent.
BEFORE_MS = {"exact": {0: 186, 1: 283, 10: 355}, "best_effort": {0: 168, 0.1: 191, 1: 220, 5: 231, 10: 264}}


@dataclass
class Promise:
    text: str
    value: float
    bound: float

    @property
    def kept(self):
        return self.value <= self.bound


def of_cell(contender, line, value, job):
    title = f"{contender.title}, {line.name}"
    if value == "over":
        yield Promise(f"{title}: seconds of a run", float("inf"), job.limit_s)
    elif line.rate_mbps == 100:
        wire_ms = line.serial_ms(job.ranks, job.size) + 2 * line.rtt_ms
        yield Promise(f"{title}: time / (wire + 2 round trips)", value["ms"] / wire_ms, SLOW_LINE_FACTOR[contender.delivery])
        if line.queue_ms < line.rtt_ms:
            yield Promise(f"{title}: share dropped by full queues", value["overflow"], OVERFLOW_MAX)
    elif (line.rate_mbps, line.rtt_ms, line.queue_ms) == (500, 20, 50):
        before_ms = BEFORE_MS[contender.delivery].get(line.loss_percent)
        if before_ms is not None:
            yield Promise(f"{title}: ms", value["ms"], before_ms)


def all_of(results, contenders, job):
    """Nothing for another tensor or another number of ranks: the promises speak of one."""
    if (job.ranks, job.size) != (RANKS, BYTES):
        return
    for line, runs in results.items():
        for contender in contenders:
            value = cell(runs.get(contender.name, []))
            if contender.delivery and value is not None:
                yield from of_cell(contender, line, value, job)


def text_of(promises):
    lines = [f"  {'pass ' if one.kept else 'SHORT'}  {one.value:8.3f} <= {one.bound:<5g} {one.text}" for one in promises]
    return "\n".join(["Promised", *lines])
