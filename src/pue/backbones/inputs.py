"""What a backbone is told about its inputs, and the standardisation that lives inside the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sklearn
import torch
from scipy import sparse
from sklearn.utils import gen_batches
from torch import Tensor, nn

from pue.core.data import PUData, as_matrix, is_bytes, is_image
from pue.errors import InvalidInput, UnknownName
from pue.persistence import kept


@kept
@dataclass(frozen=True, eq=False)
class InputSpec:
    """Shape of one row, its mean and spread on the training rows (tables), and the precision to compute in.

    >>> InputSpec((1, 28, 28)).size
    784
    """

    shape: tuple[int, ...]
    mean: Tensor | None = None
    std: Tensor | None = None
    dtype: torch.dtype = torch.float32

    @property
    def size(self) -> int:
        return int(torch.Size(self.shape).numel())

    def image_channels(self, backbone: str) -> int:
        """The channels of an image input, or an error for anything else."""
        if len(self.shape) != 3:
            raise InvalidInput(
                f"backbone {backbone!r} needs images (n, channels, height, width); rows have shape {self.shape}. "
                "Reshape them, or use 'mlp' or 'tabular'."
            )
        return self.shape[0]


def input_spec(data: PUData, dtype: str, device: torch.device) -> InputSpec:
    """What a backbone must know: shape, precision and, for tables of numbers, mean and spread of every column."""
    dtypes = {"float32": torch.float32, "float64": torch.float64}
    if dtype not in {*dtypes, "auto"}:
        raise UnknownName("dtype", dtype, [*dtypes, "auto"])
    if dtype == "auto":  # Apple's GPUs know no float64
        dtype = "float64" if "float64" in str(data.x.dtype) and device.type != "mps" else "float32"
    chosen = dtypes[dtype]
    shape = tuple(data.x.shape[1:])
    if is_image(data.x) or is_bytes(data.x):
        return InputSpec(shape, dtype=chosen)
    scaler = sklearn.preprocessing.StandardScaler(with_mean=not sparse.issparse(data.x))
    for rows in gen_batches(data.n_rows, 8192):  # piece by piece: the whole table at once takes twice its own size
        weight = None if data.sample_weight is None else data.sample_weight[rows].numpy()
        with np.errstate(invalid="ignore"):  # the root of the same −1e-20, which scikit-learn replaces by one
            scaler.partial_fit(as_matrix(data.x[rows]), sample_weight=weight)
    mean, variance = (torch.from_numpy(np.asarray(v, dtype=np.float64)) for v in (scaler.mean_, scaler.var_))
    return InputSpec(shape, mean, variance.clamp(min=0).sqrt(), chosen)  # a constant may come out as −1e-20


class Standardize(nn.Module):
    """(x − mean) / std as part of the network, so that a saved model carries its own scaling.

    A constant feature has no spread: it becomes zero and takes no part.
    """

    mean: Tensor
    inverse_std: Tensor

    def __init__(self, spec: InputSpec) -> None:
        super().__init__()
        mean = torch.zeros(spec.shape) if spec.mean is None else spec.mean
        std = torch.ones(spec.shape) if spec.std is None else spec.std
        # A spread that is only rounding noise of a large constant would blow that noise up to unit size.
        varies = std > 1e-9 * mean.abs().clamp(min=1e-9)
        self.register_buffer("mean", mean.to(spec.dtype))
        self.register_buffer("inverse_std", torch.where(varies, 1 / std, 0.0).to(spec.dtype))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) * self.inverse_std


def kaiming(network: nn.Module) -> nn.Module:
    """Kaiming-normal weights (fan in) and zero biases, as in the Dist-PU, Self-PU and ImbPU code."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network
