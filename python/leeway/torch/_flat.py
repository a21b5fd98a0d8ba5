"""Parameters of a model laid one after the other into one buffer."""

import torch

from .. import InvalidArgumentError

# Each parameter begins at a multiple of this many elements, a cache line of float32.
_ALIGNMENT = 16


def trainable(parameters):
    """Returns the parameters that need gradients, each once, in their order."""
    found = {id(parameter): parameter for parameter in parameters if parameter.requires_grad}
    if not found:
        raise InvalidArgumentError("there is no parameter that requires a gradient")
    for number, parameter in enumerate(found.values()):
        if parameter.device.type != "cpu":
            raise InvalidArgumentError(f"parameter {number} of shape {tuple(parameter.shape)} is on {parameter.device}: "
                                       "only parameters in host memory are supported, move the model with .cpu()")
        if parameter.layout != torch.strided:
            raise InvalidArgumentError(f"parameter {number} of shape {tuple(parameter.shape)} is {parameter.layout}: "
                                       "only dense parameters are supported")
    return list(found.values())


def dense_gradient(parameter):
    """Returns parameter.grad, which may be None. Raises InvalidArgumentError if it is sparse."""
    if parameter.grad is not None and parameter.grad.layout != torch.strided:
        raise InvalidArgumentError(f"the gradient of a parameter of shape {tuple(parameter.shape)} is sparse: use layers with "
                                   "sparse=False")
    return parameter.grad


class Layout:
    """Where each parameter lies in a flat buffer of `elements` elements of float32."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.offsets = []
        self.elements = 0
        for parameter in parameters:
            self.offsets.append(self.elements)
            self.elements += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
        self.elements = max(self.elements, 1)

    def zeros(self):
        return torch.zeros(self.elements, dtype=torch.float32)

    def views(self, flat):
        """Returns one view of `flat` for each parameter, with its shape."""
        return [flat[offset:offset + parameter.numel()].view(parameter.shape)
                for offset, parameter in zip(self.offsets, self.parameters)]

    def pieces(self, begin, end):
        """Returns (number of the parameter, first, last) for each that has elements in [begin, end), counted from `begin`."""
        found = []
        for number, (offset, parameter) in enumerate(zip(self.offsets, self.parameters)):
            first, last = max(offset, begin), min(offset + parameter.numel(), end)
            if first < last:
                found.append((number, first - begin, last - begin))
        return found
