"""Tensors as Leeway takes them: in host memory."""

import torch

from .. import InvalidArgumentError


def on_host(tensor, user):
    """Returns a tensor in host memory as it is, and a copy of a CUDA tensor in pinned memory. Waits for that copy, and so for
    the kernels that make the tensor. No test has run this on a GPU yet."""
    if tensor.is_cpu:
        return tensor
    if not tensor.is_cuda:
        raise InvalidArgumentError(f"a tensor on {tensor.device}: {user} takes tensors in host memory and on CUDA devices")
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor)
