"""The measured times as a page that opens offline: curves by size, drawn by the parts of the simulator's report."""

import json
from html import escape
from pathlib import Path

REPORT = Path(__file__).resolve().parent.parent.parent / "simulator" / "report"
CHART_JS = [Path("/usr/share/javascript/chart.js/chart.min.js"), Path("/usr/share/nodejs/chart.js/dist/chart.min.js")]


def chart(ranks, names, sizes, time_us):
    """A picture as simulator/report/chart.h has it: a curve for each name."""
    series = []
    for number, name in enumerate(names):
        stroke = {"color": number % 8, "dash": number // 8}
        series.append({"name": name, "x": sizes, "y": [time_us(name, ranks, size) for size in sizes], "stroke": stroke})
    return {"kind": "lines", "title": f"{ranks} ranks: time of an all-reduce", "by": "",
            "x": {"title": "tensor (bytes)", "log": True, "swept": True},
            "y": {"title": "time (µs)", "log": True, "swept": False}, "series": series, "marks": []}


def page(title, note, charts):
    chart_js = next((path for path in CHART_JS if path.exists()), None)
    if chart_js is None:
        raise FileNotFoundError("Chart.js 3; on Debian: apt-get install libjs-chart.js")
    figures = "".join(
        f'<figure>\n<figcaption>{escape(one["title"])}</figcaption>\n<div class="plot"><canvas role="img" '
        f'aria-label="{escape(one["title"])}"></canvas></div>\n<details><summary>Numbers</summary></details>\n</figure>\n'
        for one in charts)
    data = json.dumps(charts).replace("<", "\\u003c")
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
            f'<style>\n{(REPORT / "page.css").read_text()}</style>\n</head>\n<body>\n<main>\n'
            f'<header><h1>{escape(title)}</h1><p>{escape(note)}</p></header>\n<div class="charts">\n{figures}</div>\n</main>\n'
            f'<script type="application/json" id="charts">{data}</script>\n<script>\n{chart_js.read_text()}</script>\n'
            f'<script>\n{(REPORT / "page.js").read_text()}</script>\n</body>\n</html>\n')
