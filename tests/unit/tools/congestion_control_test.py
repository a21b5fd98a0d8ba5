"""The words about congestion control in tables of tools/compare_peers, and one connection over this host's loopback."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools" / "dev"))
import congestion_control


class CongestionControl(unittest.TestCase):
    def test_the_name_ends_at_the_first_zero(self):
        self.assertEqual(congestion_control.name_of(b"cubic\0\0\0bbr"), "cubic")

    def test_cubic_and_bbr_stand_beside_the_default(self):
        self.assertEqual(congestion_control.to_compare("bbr", ["reno", "bbr", "cubic"]), ["bbr", "cubic"])
        self.assertEqual(congestion_control.to_compare("cubic", ["reno", "cubic"]), ["cubic"])
        self.assertEqual(congestion_control.to_compare("reno", ["reno", "bbr", "cubic"]), ["reno", "cubic", "bbr"])

    def test_the_line_names_the_default(self):
        self.assertEqual(congestion_control.describe(["bbr", "cubic"]),
                         "TCP congestion control: bbr (this kernel's default), cubic")

    def test_the_route_is_the_kernels_own_with_a_control(self):
        words = congestion_control.loopback_route("cubic")
        self.assertEqual(words[:4], ["route", "replace", "local", "127.0.0.1"])
        self.assertEqual(words[-2:], ["congctl", "cubic"])

    def test_a_connection_tells_what_it_uses(self):
        offered = congestion_control.available()
        if not offered:
            self.skipTest("this kernel does not tell")
        self.assertIn(congestion_control.in_use(), offered)


if __name__ == "__main__":
    unittest.main()
