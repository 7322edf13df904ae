"""ResNet-50 (He et al. 2016) with one output, not pretrained; strides on the 3×3 convolutions as in torchvision."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from pue.backbones.inputs import InputSpec, kaiming


class _Bottleneck(nn.Module):
    """1×1 → 3×3 → 1×1 with four times the width at the end, added to the input."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


def resnet50(spec: InputSpec) -> nn.Module:
    """Stem, stages of 3-4-6-3 bottlenecks, global average, Linear(2048, 1).

    >>> sum(p.numel() for p in resnet50(InputSpec((3, 224, 224))).parameters())
    23510081
    """
    layers: list[nn.Module] = [
        nn.Conv2d(spec.image_channels("resnet50"), 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    channels = 64
    for width, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for block in range(blocks):
            layers.append(_Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return kaiming(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1)))
