"""torch's own tests of process groups, over Leeway. Run by test_conformance.py, with what the tests read in the environment:
BACKEND ("leeway", or "gloo": Leeway poses as Gloo, for the tests that only Gloo has), WORLD_SIZE, TEMP_DIR."""

import multiprocessing
import os
import sys
import unittest

import torch.distributed as dist
import torch.testing._internal.common_distributed as common

import leeway.torch

POSING = os.environ["BACKEND"] == "gloo"
if POSING:
    dist.Backend._ensure_backend_registered("gloo")
    creator = dist.Backend._plugins["LEEWAY"].creator_fn
    dist.Backend._plugins["GLOO"] = dist.Backend._BackendPlugin(
        lambda options, backend_options: leeway.torch._create(options, None, "gloo"), True)
else:
    for feature in ("ddp", "subgroup"):
        common.DistTestCases.backend_feature[feature].add("leeway")

import torch.testing._internal.distributed.distributed_test as tests  # noqa: E402


class Conformance(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # 0.5 s a test instead of 16: nothing is imported again.
        self._start_processes(multiprocessing.get_context("fork").Process)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
