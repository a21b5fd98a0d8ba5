"""The lines of tools/compare_wan, and what physics allows on them (an all-reduce by equal shards)."""

from dataclasses import dataclass

BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Line:
    """An uplink and a downlink of one rate for every rank; `queue_ms` of the rate in front of each."""

    rate_mbps: float
    rtt_ms: float
    queue_ms: float
    loss_percent: float = 0.0
    burst: float = 0.0  # packets lost in a row, on average; 0: each is lost by itself

    @property
    def name(self):
        loss = f"{self.loss_percent:g} % loss" if self.loss_percent else "no loss"
        if self.burst:
            loss += f" in bursts of {self.burst:g}"
        return f"{self.rate_mbps:g} Mb/s, {self.rtt_ms:g} ms, queue {self.queue_ms:g} ms, {loss}"

    @property
    def lab_options(self):
        words = ["--rate", f"{self.rate_mbps:g}Mb", "--rtt", f"{self.rtt_ms:g}ms", "--queue", f"{self.queue_ms:g}ms"]
        words += ["--loss", f"{self.loss_percent:g}%"] if self.loss_percent else []
        return words + (["--burst", f"{self.burst:g}"] if self.burst else [])

    def serial_ms(self, ranks, size):
        """Time on the wire alone: every rank sends and receives 2(N-1)/N of the tensor."""
        return 2 * (ranks - 1) / ranks * size * 8 / (self.rate_mbps * 1e3)

    def limit_ms(self, ranks, size):
        """Shortest possible time. Results can leave only when contributions have come, which adds a round trip."""
        return self.serial_ms(ranks, size) + self.rtt_ms


# The table of issue 18: a shallow and a deep queue at 100 Mb/s, then losses at 500 Mb/s.
STANDARD = [
    Line(100, 50, 10),
    Line(100, 50, 100),
    *(Line(500, 20, 50, loss) for loss in (0, 0.1, 1, 5, 10)),
]
QUICK = [Line(100, 50, 10), Line(500, 20, 50), Line(500, 20, 50, 1)]


def parse(text):
    """'100,50,10', '500,20,50,1' or '500,20,50,5,8': Mb/s, ms of round trip, ms of queue, percent of loss, packets of a burst.
    ValueError otherwise."""
    numbers = [float(word) for word in text.split(",")]
    loss, burst = (numbers + [0, 0])[3:5]
    good = 3 <= len(numbers) <= 5 and min(numbers[:3]) > 0 and 0 <= loss < 100 and (burst == 0 or (burst >= 1 and loss > 0))
    if not good:
        raise ValueError(f"'{text}' is no line; give Mb/s,round trip ms,queue ms[,loss percent[,packets of a burst]], such as 100,50,10,1")
    return Line(*numbers)
