"""tools/compare_wan without a network: limits, lines, commands, medians, table, JSON and picture of runs that are made up."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[3]
LOADER = importlib.machinery.SourceFileLoader("compare_wan", str(ROOT / "tools" / "compare_wan"))
compare_wan = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_wan", LOADER))
LOADER.exec_module(compare_wan)
import contenders
import fairness
import lines
import picture
import promises
import table

JOB = contenders.Job(ranks=4, size=4 * 1024 * 1024, iterations=3, limit_s=60)
SHALLOW = lines.Line(100, 50, 10)
LOSSY = lines.Line(500, 20, 50, 1)
BY_NAME = {contender.name: contender for contender in contenders.ALL}


def a_run(ms, overflow=0.0, kept_up=True):
    return {"ms": ms, "overflow": overflow, "kept_up": kept_up}


RESULTS = {
    SHALLOW: {"gloo_cubic": [a_run(2800, 0.015)], "exact": [a_run(1900, 0.75), a_run(1700, 0.74), a_run(1800, 0.73)],
              "iperf3_bbr": [{"mbps": 95.2, "overflow": 0.02, "kept_up": True}]},
    LOSSY: {"gloo_cubic": [{"over_limit": True}], "exact": [a_run(280, 0, kept_up=False)]},
}


class Lines(unittest.TestCase):
    def test_have_the_limits_of_physics(self):
        self.assertAlmostEqual(SHALLOW.serial_ms(4, JOB.size), 503.3, places=1)  # issue 18: 503 ms
        self.assertAlmostEqual(LOSSY.limit_ms(4, JOB.size), 120.7, places=1)     # lab.md: about 121 ms

    def test_are_read_and_refused(self):
        self.assertEqual(lines.parse("200,80,40,2"), lines.Line(200, 80, 40, 2))
        self.assertEqual(lines.parse("500,20,50,5,8"), lines.Line(500, 20, 50, 5, burst=8))
        for wrong in ("", "100,50", "100,50,x", "0,50,10", "100,50,10,100", "1,2,3,4,5,6", "100,50,10,0,8", "100,50,10,5,0.5"):
            with self.assertRaises(ValueError, msg=wrong):
                lines.parse(wrong)

    def test_tell_the_laboratory_what_to_play(self):
        self.assertEqual(LOSSY.lab_options, ["--rate", "500Mb", "--rtt", "20ms", "--queue", "50ms", "--loss", "1%"])
        self.assertNotIn("--loss", SHALLOW.lab_options)
        self.assertEqual(lines.Line(500, 20, 50, 5, 8).lab_options[-4:], ["--loss", "5%", "--burst", "8"])
        self.assertTrue(lines.Line(500, 20, 50, 5, 8).name.endswith("5 % loss in bursts of 8"))


class Commands(unittest.TestCase):
    def test_choose_tcps_congestion_control_by_route(self):
        words = contenders.lab_words(BY_NAME["gloo_cubic"], SHALLOW, JOB, "/tmp/x", 1)
        self.assertEqual(words[words.index("--congctl") + 1], "cubic")
        self.assertNotIn("--congctl", contenders.lab_words(BY_NAME["exact"], SHALLOW, JOB, "/tmp/x", 1))

    def test_read_what_the_drivers_write(self):
        gloo = '{"peer":"gloo","time_us_p50":801000.0,"time_us_p99":900000.0}'
        self.assertEqual(contenders.read_result(BY_NAME["gloo_bbr"], gloo)["ms"], 801)
        leeway = '[{"time_us_p50": 2000.0, "time_us_p99": 3000.0, "loss_observed": 0.5}]'
        self.assertEqual(contenders.read_result(BY_NAME["exact"], leeway)["loss_observed"], 0.5)
        flow = '{"end": {"sum_received": {"bits_per_second": 95e6}}}'
        self.assertEqual(contenders.read_result(BY_NAME["iperf3_bbr"], flow), {"mbps": 95})

    def test_count_the_packets_that_queues_dropped(self):
        lab = {"seconds": 2, "packets": {"taken": 200, "queue_full": 30, "queue_early": 20},
               "precision": {"kept_up": True, "late_share": 0, "late": {"p99_ms": 0.1}, "processor_s": 1}}
        self.assertEqual(contenders.read_lab(json.dumps(lab))["overflow"], 0.25)


class Table(unittest.TestCase):
    def test_has_medians_and_what_was_dropped(self):
        self.assertEqual(table.cell(RESULTS[SHALLOW]["exact"])["ms"], 1800)
        self.assertEqual(table.cell_text(table.cell(RESULTS[SHALLOW]["exact"]), 60), "1,800 (74 %)")
        self.assertEqual(table.cell_text(table.cell(RESULTS[LOSSY]["exact"]), 60), "280 (0.0 %)*")
        self.assertEqual(table.cell_text(table.cell(RESULTS[LOSSY]["gloo_cubic"]), 60), "> 60 s")
        self.assertEqual(table.cell_text(table.cell([]), 60), "-")

    def test_says_what_its_marks_mean(self):
        words = " ".join(table.legend(RESULTS, [BY_NAME["exact"]], JOB))
        self.assertIn("fell behind its own clock", words)
        self.assertNotIn("-: not run", words)

    def test_shows_the_wire_limit(self):
        self.assertIn("503 + 50", table.text_of(RESULTS, contenders.ALL, JOB))


class Picture(unittest.TestCase):
    def test_is_one_well_formed_file_without_scripts(self):
        text = picture.svg_of(RESULTS, contenders.ALL, JOB, "a <machine> & its load")
        root = ElementTree.fromstring(text)
        self.assertNotIn("script", text)
        words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("1,800 ms, 74 % dropped by queues", words)
        self.assertIn("over 60 s a run", words)
        self.assertIn("280 ms *", words)
        width = float(root.get("width"))
        for bar in root.iter("{http://www.w3.org/2000/svg}rect"):
            self.assertLessEqual(float(bar.get("x", 0)) + float(bar.get("width")), width)

    def test_can_be_of_nothing(self):
        ElementTree.fromstring(picture.svg_of({}, contenders.ALL, JOB, ""))


class WhatIsWorthRunning(unittest.TestCase):
    def test_is_not_what_took_too_long_with_less_loss(self):
        cubic = BY_NAME["gloo_cubic"]
        self.assertTrue(compare_wan.is_hopeless(RESULTS, cubic, LOSSY))
        self.assertTrue(compare_wan.is_hopeless(RESULTS, cubic, lines.Line(500, 20, 50, 5)))
        self.assertFalse(compare_wan.is_hopeless(RESULTS, cubic, lines.Line(500, 20, 50, 0.1)))
        self.assertFalse(compare_wan.is_hopeless(RESULTS, cubic, SHALLOW))
        self.assertFalse(compare_wan.is_hopeless(RESULTS, BY_NAME["exact"], LOSSY))


class Promises(unittest.TestCase):
    def test_are_judged_by_line_and_delivery(self):
        judged = {promise.text: promise for promise in promises.all_of(RESULTS, contenders.ALL, JOB)}
        shallow = judged["Leeway exact, 100 Mb/s, 50 ms, queue 10 ms, no loss: time / (wire + 2 round trips)"]
        self.assertAlmostEqual(shallow.value, 1800 / 603.3, places=3)
        self.assertFalse(shallow.kept)
        self.assertFalse(judged["Leeway exact, 100 Mb/s, 50 ms, queue 10 ms, no loss: share dropped by full queues"].kept)
        self.assertTrue(judged["Leeway exact, 500 Mb/s, 20 ms, queue 50 ms, 1 % loss: ms"].kept)
        self.assertEqual(len(judged), 3)  # Gloo promises nothing

    def test_speak_of_one_tensor_only(self):
        self.assertEqual(list(promises.all_of(RESULTS, contenders.ALL, contenders.Job(8, JOB.size, 3, 60))), [])

    def test_are_broken_by_a_run_that_does_not_end(self):
        results = {SHALLOW: {"exact": [{"over_limit": True}]}}
        self.assertFalse(next(promises.all_of(results, contenders.ALL, JOB)).kept)


SHARES = {"case": fairness.Case("wan", "cubic", 4, 20), "alone": [{"leeway_mbps": 0, "mbps": 96, "loss": 0.001, "kept_up": True}],
          "beside": [{"leeway_mbps": 8, "mbps": 80, "loss": 0.02, "kept_up": True}]}


class Fairness(unittest.TestCase):
    def test_a_share_is_over_that_of_one_flow(self):
        value = fairness.cell(SHARES)
        self.assertAlmostEqual(value["leeway"], 0.4)
        self.assertAlmostEqual(value["tcp"], 1.0)
        self.assertAlmostEqual(value["tcp_kept"], 80 / 96)

    def test_promises_both_ends_and_what_tcp_loses(self):
        kept = [promise.kept for promise in promises.of_fairness(SHARES, fairness.cell(SHARES))]
        self.assertEqual(kept, [False, True, False])

    def test_has_its_table_and_its_picture(self):
        self.assertIn("| 0.40", fairness.text_of([SHARES]))
        ElementTree.fromstring(picture.svg_of({}, [], JOB, "made up", [SHARES]))

    def test_loses_packets_between_members_only(self):
        words = fairness.lab_words(fairness.Case("wan", "cubic", 4, 20, 10), "/folder", 1, True)
        self.assertIn('tier: path from: "0" to: "1-7" loss { random { p: 0.1 } }', words)


class EarlierRuns(unittest.TestCase):
    def test_are_read_back_as_they_were_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "wan.json"
            path.write_text(compare_wan.json_of(RESULTS, contenders.ALL, JOB, (1.0, 2.0)))
            results, job, loads, shares = compare_wan.read_earlier([path])
        self.assertEqual((results, job, loads, shares), (RESULTS, JOB, (1.0, 2.0), []))

    def test_of_shares_are_read_back_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "shares.json"
            path.write_text(compare_wan.json_of({}, [], JOB, (1.0, 2.0), [SHARES]))
            self.assertEqual(compare_wan.read_earlier([path])[3], [SHARES])

    def test_must_be_of_the_same_job(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / "a.json", Path(folder) / "b.json"]
            paths[0].write_text(compare_wan.json_of(RESULTS, contenders.ALL, JOB, (1.0, 2.0)))
            other = contenders.Job(ranks=8, size=JOB.size, iterations=3, limit_s=60)
            paths[1].write_text(compare_wan.json_of(RESULTS, contenders.ALL, other, (1.0, 2.0)))
            with self.assertRaises(RuntimeError):
                compare_wan.read_earlier(paths)


class CommandLine(unittest.TestCase):
    def test_refuses_unknown_contenders_by_name(self):
        arguments, sys.argv = sys.argv, ["compare_wan", "--only", "exact,nobody"]
        words = io.StringIO()
        with contextlib.redirect_stderr(words), self.assertRaises(SystemExit):
            compare_wan.parse_arguments()
        sys.argv = arguments
        self.assertIn("there is no nobody", words.getvalue())


if __name__ == "__main__":
    unittest.main()
