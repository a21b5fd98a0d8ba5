"""The table as a picture: how many times the wire limit each contender takes, on a logarithmic axis. One SVG, without scripts."""

import math
from xml.sax.saxutils import escape

from fairness import cell as fairness_cell
from table import cell, share_text

WIDTH, LEFT, RIGHT = 980, 190, 190
BAR, GAP, HEAD, TOP, BOTTOM = 16, 4, 30, 74, 44
COLOURS = {"gloo_cubic": "#9aa5b1", "gloo_bbr": "#5f6b7a", "exact": "#1f6fb5", "best_effort": "#3aa17e"}
SPARE_COLOURS = ["#b5651d", "#7a4fb5", "#b53a6f", "#4f8a10"]
TICKS = [1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500]


def colour_of(contender, contenders):
    spare = [other.name for other in contenders if other.name not in COLOURS]
    if contender.name in COLOURS:
        return COLOURS[contender.name]
    return SPARE_COLOURS[spare.index(contender.name) % len(SPARE_COLOURS)]


def text(x, y, words, **attributes):
    rest = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{rest}>{escape(words)}</text>'


class Axis:
    """From 1, the wire limit, to the worst ratio."""

    def __init__(self, worst):
        self.end = next((tick for tick in TICKS if tick >= worst), worst)
        self.end = max(self.end, 2)

    def x(self, ratio):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(min(max(ratio, 1), self.end)) / math.log(self.end)

    def drawn(self, bottom):
        for tick in TICKS:
            if tick > self.end:
                return
            x = self.x(tick)
            colour = "#b3261e" if tick == 1 else "#d9dee4"
            yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="{colour}"/>'
            yield text(x, TOP - 12, f"{tick:g}", text_anchor="middle", fill="#5f6b7a")


def label_of(value, job):
    if value == "over":
        return f"over {job.limit_s:g} s a run"
    overflow = f", {share_text(value['overflow'])} dropped by queues" if value["overflow"] >= 0.001 else ""
    return f"{value['ms']:,.0f} ms{overflow}{'' if value['kept_up'] else ' *'}"


def bar(axis, contender, contenders, line, value, y, job):
    ratio = axis.end if value == "over" else value["ms"] / line.limit_ms(job.ranks, job.size)
    width = max(axis.x(ratio) - LEFT, 2)
    opacity = ' fill-opacity="0.35"' if value == "over" else ""
    yield (f'<rect x="{LEFT}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" rx="2" '
           f'fill="{colour_of(contender, contenders)}"{opacity}/>')
    yield text(LEFT - 8, y + BAR - 4, contender.title, text_anchor="end", fill="#26313d")
    yield text(LEFT + width + 6, y + BAR - 4, label_of(value, job), fill="#26313d")


def groups(results, contenders):
    """[(line, [(contender, cell), ...]), ...]: what there is to draw."""
    for line, runs in results.items():
        cells = [(contender, cell(runs.get(contender.name, []))) for contender in contenders if contender.is_all_reduce]
        present = [(contender, value) for contender, value in cells if value is not None]
        if present:
            yield line, present


def shares_of(fairness, y):
    """Bars of each case's shares of rank 0's line: Leeway's, and that of TCP's flows together."""
    parts = [text(12, y + 16, "Shares of one line, beside TCP (red: a fair share of Leeway's)", font_weight="bold", fill="#26313d")]
    y += HEAD - 6
    span = WIDTH - 2 * LEFT - RIGHT
    for result in fairness:
        case, value = result["case"], fairness_cell(result)
        ours, theirs = value["leeway_part"], value["tcp"] * case.flows / (case.flows + 1)
        parts.append(text(12, y + BAR - 4, case.name, fill="#26313d"))
        left = 2 * LEFT
        for share, colour in ((ours, COLOURS["exact"]), (theirs, COLOURS["gloo_cubic"])):
            parts.append(f'<rect x="{left:.1f}" y="{y:.1f}" width="{span * min(share, 1):.1f}" height="{BAR}" fill="{colour}"/>')
            left += span * min(share, 1)
        x = 2 * LEFT + span / (case.flows + 1)
        parts.append(f'<line x1="{x:.1f}" y1="{y - 1:.1f}" x2="{x:.1f}" y2="{y + BAR + 1:.1f}" stroke="#b3261e"/>')
        parts.append(text(left + 6, y + BAR - 4, f"{100 * ours:.0f} % and {100 * theirs:.0f} %", fill="#26313d"))
        y += BAR + GAP
    return parts, y + 8


def svg_of(results, contenders, job, subtitle, fairness=()):
    drawn = list(groups(results, contenders))
    ratios = [value["ms"] / line.limit_ms(job.ranks, job.size)
              for line, cells in drawn for _, value in cells if value != "over"]
    axis = Axis(max(ratios, default=2))
    parts, y = [], TOP + 4
    for line, cells in drawn:
        limit = f"wire limit {line.limit_ms(job.ranks, job.size):,.0f} ms"
        parts.append(f'<rect x="0" y="{y:.1f}" width="{WIDTH}" height="{HEAD - 8}" fill="white"/>')
        parts.append(text(12, y + 16, f"{line.name}: {limit}", font_weight="bold", fill="#26313d"))
        y += HEAD - 6
        for contender, value in cells:
            parts += bar(axis, contender, contenders, line, value, y, job)
            y += BAR + GAP
        y += 8
    axis_end = y
    if fairness:
        shares, y = shares_of(fairness, y)
        parts += shares
    height = y + BOTTOM
    foot = ("Red line: what physics allows, time on the wire and one round trip. Percent: packets that the lines' full queues "
            "dropped.")
    title = (f"All-reduce of {job.size / 2**20:g} MiB float32 by {job.ranks} ranks behind slow lines: "
             "time as a multiple of the wire limit")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
        text(12, 22, title, font_size=15, font_weight="bold", fill="#26313d"),
        text(12, 42, subtitle, fill="#5f6b7a"),
        *axis.drawn(axis_end - 4), *parts,
        text(12, height - 16, foot, fill="#5f6b7a"),
        "</svg>", ""])
