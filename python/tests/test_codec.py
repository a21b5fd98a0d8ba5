import ctypes

import numpy as np
import pytest

import leeway


@pytest.mark.parametrize("codec, bits", [("fp32", 32), ("bf16", 16), ("fp8_e4m3_block", 8.25), ("mxfp4", 4.25),
                                         ("nvfp4", 4.5), ("luq:draws=2", 8), ("sparse", 5)])
def test_what_is_encoded_decodes_alone(codec, bits):
    values = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
    encoded = leeway.encode(values, codec, seed=3)
    assert encoded.dtype == np.uint8 and abs(8 * encoded.size / values.size - bits) < 0.1
    decoded = leeway.decode(encoded, codec, values.size, seed=3)
    assert decoded.shape == values.shape and decoded.dtype == np.float32
    assert np.mean((decoded - values) ** 2) < (1e-12 if bits == 32 else 3)
    packet = encoded[: encoded.size // 4]  # the first of four packets
    assert (leeway.decode(packet, codec, 1024, seed=3) == decoded[:1024]).all()


def test_ctypes():
    values = (ctypes.c_float * 32)(*range(32))
    encoded = leeway.encode(values, "bf16")
    assert (encoded == leeway.encode(np.asarray(values), "bf16")).all()
    assert leeway.decode((ctypes.c_uint8 * 64)(*encoded.tolist()), "bf16", 32).tolist() == list(range(32))


def test_rounding_is_unbiased():
    values = np.full(1024, 0.3, np.float32)
    values[0] = 1
    mean = np.mean([leeway.decode(leeway.encode(values, "nvfp4", seed=seed), "nvfp4", 1024)[1:] for seed in range(400)])
    assert abs(mean - 0.3) < 5 * 0.05 / np.sqrt(400 * 1023) + 1e-4


def test_bad_arguments():
    values = np.zeros(64, np.float32)
    for call, says in [(lambda: leeway.encode(values, "automatic"), "automatic"),
                       (lambda: leeway.encode(values.astype(np.int32), "bf16"), "int32"),
                       (lambda: leeway.encode(values, "bf16", packet_elements=33), "multiple of 32"),
                       (lambda: leeway.encode(np.zeros(1 << 15, np.float32), "bf16", packet_elements=1 << 15), "from 32 to 16384"),
                       (lambda: leeway.decode(np.zeros(5, np.uint8), "bf16", 64), "128 bytes, not 5"),
                       (lambda: leeway.decode(np.zeros(5, np.uint8), "bf16", 1 << 60), "too few"),
                       (lambda: leeway.encode(values, "bf17"), "bf17")]:
        with pytest.raises(leeway.InvalidArgumentError, match=says):
            call()


def test_a_packet_may_have_fewer_elements_than_its_limit():
    values = np.arange(10, dtype=np.float32)
    assert (leeway.decode(leeway.encode(values, "fp32", packet_elements=1 << 14), "fp32", 10,
                          packet_elements=1 << 14) == values).all()
