#!/usr/bin/env python3
"""Compares our element conversions with those of ml_dtypes (pip install ml_dtypes numpy).

usage: ml_dtypes_oracle.py path/to/codec_exhaustive

The program writes the codes of every 2,017th float; ml_dtypes converts the same floats. What is known
to differ is asserted, not skipped: ml_dtypes overflows FP8 to NaN or infinity where we saturate, and
turns NaN into a zero where FP6 and FP4 have no NaN, while we follow CUDA.
"""

import subprocess
import sys

import ml_dtypes
import numpy

STRIDE = 2017

# Our name, ml_dtypes' type, largest finite value's code, bits of a code.
FORMATS = [
    ("e4m3", ml_dtypes.float8_e4m3fn, 0x7E, 8),
    ("e5m2", ml_dtypes.float8_e5m2, 0x7B, 8),
    ("e2m3", ml_dtypes.float6_e2m3fn, 0x1F, 6),
    ("e3m2", ml_dtypes.float6_e3m2fn, 0x1F, 6),
    ("e2m1", ml_dtypes.float4_e2m1fn, 0x07, 4),
]


def differing(program, name, dtype, largest, bits):
    inputs = numpy.arange(0, 2**32, STRIDE, dtype=numpy.uint64).astype(numpy.uint32)
    floats = inputs.view(numpy.float32)
    dumped = subprocess.run([program, "--dump", name], check=True, stdout=subprocess.PIPE).stdout
    ours = numpy.frombuffer(dumped, dtype=numpy.uint8)
    with numpy.errstate(all="ignore"):
        theirs = floats.astype(dtype).view(numpy.uint8) & ((1 << bits) - 1)

    sign = 1 << (bits - 1)
    nan = numpy.isnan(floats)
    expected = theirs.copy()
    overflowed = ~nan & ((theirs & (sign - 1)) > largest)
    expected[overflowed] = largest | (theirs[overflowed] & sign)
    nan_of_ours = 0x7F if bits == 8 else largest
    expected[nan] = nan_of_ours
    nan_codes = sorted({int(code) for code in theirs[nan]})
    if bits < 8 and not set(nan_codes) <= {0, sign}:
        raise SystemExit(f"{name}: ml_dtypes no longer turns NaN into zero but into {nan_codes}")
    wrong = int((ours != expected).sum())
    print(f"{name}: {len(ours)} floats, {wrong} differ; overflow {int(overflowed.sum())}, "
          f"NaN there {[hex(code) for code in nan_codes]}, here {nan_of_ours:#x}")
    return wrong


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    wrong = 0
    for name, dtype, largest, bits in FORMATS:
        wrong += differing(sys.argv[1], name, dtype, largest, bits)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
