"""Medians of the runs, and the table."""

import statistics


def cell(runs):
    """The medians of a contender's runs on a line; None if there are none, "over" if any took too long."""
    done = [run for run in runs if not run.get("over_limit")]
    if not runs:
        return None
    if len(done) < len(runs):
        return "over"
    medians = {key: statistics.median(run[key] for run in done) for key in ("ms", "mbps", "overflow") if key in done[0]}
    return medians | {"kept_up": sum(run["kept_up"] for run in done) * 2 > len(done)}


def share_text(share):
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def cell_text(value, limit_s):
    """'2,919 (73 %)': ms, and the share of its packets that queues dropped because of its own sending."""
    if value is None:
        return "-"
    if value == "over":
        return f"> {limit_s:g} s"
    mark = "" if value["kept_up"] else "*"
    if "mbps" in value:
        return f"{value['mbps']:,.0f}{mark}"
    return f"{value['ms']:,.0f} ({share_text(value['overflow'])}){mark}"


def limit_text(line, job):
    return f"{line.serial_ms(job.ranks, job.size):.0f} + {line.rtt_ms:g}"


def rows_of(results, contenders, job):
    """The table as lists of texts, the head first."""
    heads = [contender.title + ("" if contender.is_all_reduce else ", Mb/s") for contender in contenders]
    yield ["line: rate, round trip, queue, loss", "wire limit", *heads]
    for line, runs in results.items():
        cells = [cell_text(cell(runs.get(contender.name, [])), job.limit_s) for contender in contenders]
        yield [line.name, limit_text(line, job), *cells]


def text_of(results, contenders, job):
    rows = list(rows_of(results, contenders, job))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def laid_out(row):
        cells = [f"{text:<{width}}" if i == 0 else f"{text:>{width}}" for i, (text, width) in enumerate(zip(row, widths))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([laid_out(rows[0]), rule, *map(laid_out, rows[1:])])


def legend(results, contenders, job):
    """Yields the meaning of the figures that the table has."""
    yield (f"All-reduce of {job.size / 2**20:g} MiB of float32, {job.ranks} ranks: ms (median), and the share of all packets that "
           "the queues dropped.")
    yield "Wire limit: time on the wire + one round trip, ms."
    cells = [cell(runs.get(contender.name, [])) for runs in results.values() for contender in contenders]
    if any(isinstance(value, dict) and not value["kept_up"] for value in cells):
        yield "*: the laboratory fell behind its own clock in most runs; the figure is this machine's, not the network's."
    if None in cells:
        yield "-: not run, since a line with less loss took too long already, or not asked for."
