"""The networks as METHODS §3 describes them, and what `build` makes of a user's own."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pue import PUClassifier
from pue.backbones import BACKBONES, InputSpec, build
from pue.backbones.imagenet import ImageNetScaling
from pue.backbones.inputs import Standardize
from pue.errors import InvalidInput, UnknownName

SPECS = {
    "cnn13": InputSpec((3, 32, 32)),
    "cnn13_imagenet": InputSpec((1, 32, 32)),
    "fast_cnn": InputSpec((1, 28, 28)),
    "linear": InputSpec((10,)),
    "mlp": InputSpec((784,)),
    "resnet50": InputSpec((3, 64, 64)),
    "resnet50_imagenet": InputSpec((1, 32, 32)),
    "small_cnn": InputSpec((1, 28, 28)),
    "tabular": InputSpec((10,)),
}


def shapes(module: nn.Module) -> list[tuple[int, ...]]:
    return [tuple(parameter.shape) for parameter in module.parameters()]


def kinds(module: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in module.modules() if not list(layer.children())]


# -------------------------------------------------------------------------------------------------- what they are


@pytest.mark.parametrize(("name", "count"), [("mlp", 507_901), ("cnn13", 3_015_255), ("resnet50", 23_510_081)])
def test_the_papers_networks_have_the_known_number_of_parameters(name: str, count: int) -> None:
    assert sum(parameter.numel() for parameter in BACKBONES[name](SPECS[name]).parameters()) == count


def test_the_mlp_is_four_hidden_layers_of_300_with_batch_norm_and_no_bias() -> None:
    module = BACKBONES["mlp"](InputSpec((1, 28, 28)))
    hidden = [(300,), (300,)]  # scale and shift of the batch norm
    assert shapes(module) == [(300, 784), *hidden, *[(300, 300), *hidden] * 3, (1, 300), (1,)]
    assert kinds(module) == ["Flatten", *["Linear", "BatchNorm1d", "ReLU"] * 4, "Linear"]


def test_the_cnn_is_nine_convolutions_with_bias_and_batch_norm_and_a_head_of_three() -> None:
    module = BACKBONES["cnn13"](SPECS["cnn13"])
    convolutions = [
        (96, 3, 3, 3),
        (96, 96, 3, 3),
        (96, 96, 3, 3),
        (192, 96, 3, 3),
        (192, 192, 3, 3),
        (192, 192, 3, 3),
        (192, 192, 3, 3),
        (192, 192, 1, 1),
        (10, 192, 1, 1),
    ]
    written_out = [shape for conv in convolutions for shape in (conv, *[(conv[0],)] * 3)]
    assert shapes(module) == [*written_out, (1000, 640), (1000,), (1000, 1000), (1000,), (1, 1000), (1,)]
    head = ["Flatten", "Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert kinds(module) == [*["Conv2d", "BatchNorm2d", "ReLU"] * 9, *head]
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer.stride for layer in layers] == [
        (1, 1),
        (1, 1),
        (2, 2),
        (1, 1),
        (1, 1),
        (2, 2),
        (1, 1),
        (1, 1),
        (1, 1),
    ]
    assert [layer.padding for layer in layers] == [(1, 1)] * 7 + [(0, 0)] * 2


def test_the_resnet_has_the_shapes_of_the_paper() -> None:
    module = BACKBONES["resnet50"](SPECS["resnet50"])
    convolutions = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    expected, channels = [(64, 3, 7, 7, 2)], 64
    for width, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for block in range(blocks):
            step = stride if block == 0 else 1  # on the 3×3 convolution, as in torchvision ("v1.5")
            expected += [(width, channels, 1, 1, 1), (width, width, 3, 3, step), (4 * width, width, 1, 1, 1)]
            if block == 0:
                expected.append((4 * width, channels, 1, 1, step))
            channels = 4 * width
    assert [(*layer.weight.shape, layer.stride[0]) for layer in convolutions] == expected
    assert all(layer.bias is None for layer in convolutions)
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in module.modules()) == 53
    assert shapes(module)[-2:] == [(1, 2048), (1,)]


def test_the_resnet_scores_small_images_too() -> None:
    network = build("resnet50", SPECS["resnet50"], seed=0)
    assert network(torch.rand(3, 3, 64, 64)).shape == (3,)


@pytest.mark.parametrize("name", sorted(BACKBONES))
def test_every_backbone_gives_one_score_a_row_and_a_gradient_to_every_parameter(name: str) -> None:
    spec = SPECS[name] if name != "resnet50" else InputSpec((1, 32, 32))
    network = build(name, spec, seed=0)
    scores = network(torch.rand(4, *spec.shape, generator=torch.Generator().manual_seed(0)))
    assert scores.shape == (4,)
    scores.square().sum().backward() if name != "linear" else scores.sum().backward()  # linear starts at zero
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("channels", [1, 3])
def test_imagenet_scaling_is_that_of_dist_pu_s_code(channels: int) -> None:
    images = torch.rand(2, channels, 4, 5, generator=torch.Generator().manual_seed(0))
    scaled = ImageNetScaling()(images)
    assert scaled.shape == (2, 3, 4, 5)
    for channel, (mean, std) in enumerate(zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True)):
        torch.testing.assert_close(scaled[:, channel], (images[:, channel % channels] - mean) / std)


def test_imagenet_scaling_of_other_channels_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one or three channels; these have 2"):
        build("cnn13_imagenet", InputSpec((2, 32, 32)), seed=0)


@pytest.mark.parametrize("size", [(1, 28, 28), (3, 29, 31)])
def test_the_cnn_takes_images_of_other_sizes(size: tuple[int, int, int]) -> None:
    assert build("cnn13", InputSpec(size), seed=0)(torch.rand(2, *size)).shape == (2,)


@pytest.mark.parametrize("name", ["cnn13", "mlp", "fast_cnn"])
def test_weights_are_kaiming_normal_and_biases_zero(name: str) -> None:
    # N(0, 2 / fan in): standard deviation within 5 %, mean within five standard errors, tails like a normal law's.
    for layer in build(name, SPECS[name], seed=0).modules():
        if not isinstance(layer, nn.Conv2d | nn.Linear):
            continue
        weight = layer.weight.detach()
        std = math.sqrt(2 / weight[0].numel())
        if weight.numel() >= 2000:
            assert float(weight.std()) == pytest.approx(std, rel=0.05)
            assert float((weight.abs() > 2 * std).double().mean()) == pytest.approx(0.0455, abs=0.015)
        assert abs(float(weight.mean())) < 5 * std / math.sqrt(weight.numel())
        if layer.bias is not None:
            assert not layer.bias.any()


def test_batch_norm_starts_as_the_identity() -> None:
    for layer in build("mlp", SPECS["mlp"], seed=0).modules():
        if isinstance(layer, nn.BatchNorm1d):
            assert (layer.weight == 1).all()
            assert (layer.bias == 0).all()


def test_a_linear_score_starts_at_zero() -> None:
    assert not build("linear", SPECS["linear"], seed=0)(torch.randn(5, 10)).any()


# ------------------------------------------------------------------------------------------------- standardisation


def test_tables_are_standardised_inside_the_network() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    z = Standardize(InputSpec((2,), torch.tensor([2.0, 20.0]), torch.tensor([1.0, 10.0])))(x)
    assert torch.equal(z, torch.tensor([[-1.0, -1.0], [1.0, 1.0]]))


@pytest.mark.parametrize(
    ("mean", "std", "unit"), [(123_456.789, 1e-11, 0.0), (0.0, 0.0, 0.0), (1.0, 1e-6, 1.0), (0.0, 1e-12, 1.0)]
)
def test_a_spread_of_rounding_noise_is_none_and_a_small_one_is_one(mean: float, std: float, unit: float) -> None:
    center, spread, x = (torch.tensor([number], dtype=torch.float64) for number in (mean, std, mean + std))
    layer = Standardize(InputSpec((1,), center, spread, torch.float64))
    assert layer(x[None]).item() == pytest.approx(unit, abs=1e-3)


@pytest.mark.parametrize("value", [0.0, 1e-12, 0.1, 123_456.789, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_features_are_harmless(value: float, dtype: type) -> None:
    # The spread of a constant is rounding noise; divided by it, the noise would be a feature of unit size.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(dtype)
    X[:, 1] = value
    s = (rng.random(200) < 0.3) & (X[:, 0] > 0)
    classifier = PUClassifier(prior=0.5, epochs=2, random_state=0).fit(X, s)
    assert np.isfinite(classifier.decision_function(X)).all()
    moved = X.copy()
    moved[:, 1] = value * 2 + 1
    np.testing.assert_array_equal(classifier.decision_function(moved), classifier.decision_function(X))


@pytest.mark.parametrize("name", ["linear", "tabular"])
def test_the_score_of_a_row_does_not_depend_on_the_other_rows(name: str) -> None:
    network = build(name, InputSpec((4,), dtype=torch.float64), seed=0)
    if name == "linear":
        nn.init.normal_(network.network[-1].weight)
    x = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    other = x.clone()
    other[1:] *= 100
    for module in (network.train(), network.eval()):
        torch.testing.assert_close(module(x)[0], module(other)[0], rtol=1e-13, atol=0)
        assert module(x)[0] != 0


# -------------------------------------------------------------------------------------------------------- building


def test_auto_takes_a_cnn_for_images_and_an_mlp_for_tables() -> None:
    images, tables = (build("auto", InputSpec(shape), seed=0) for shape in ((1, 28, 28), (10,)))
    assert shapes(images) == shapes(BACKBONES["fast_cnn"](InputSpec((1, 28, 28))))
    assert shapes(tables) == shapes(BACKBONES["tabular"](InputSpec((10,))))


@pytest.mark.parametrize("name", ["fast_cnn", "mlp", "tabular"])
def test_the_seed_alone_decides_the_initial_weights(name: str) -> None:
    one, again, other = (
        torch.cat([p.flatten() for p in build(name, SPECS[name], seed=s).parameters()]) for s in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("name", ["mlp", "tabular"])
def test_building_leaves_the_global_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    build(name, InputSpec((4,)), seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_trial_pass_of_a_network_that_is_random_in_eval_mode_leaves_the_global_generator_alone() -> None:
    class Noisy(nn.Linear):
        """Monte Carlo dropout: works in eval mode too."""

        def forward(self, x: Tensor) -> Tensor:
            return functional.dropout(super().forward(x), 0.5)

    before = torch.get_rng_state()
    build(lambda spec: Noisy(4, 1), InputSpec((4,)), seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_module_is_copied_and_the_original_untouched() -> None:
    mine = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    before = {name: tensor.clone() for name, tensor in mine.state_dict().items()}
    network = build(mine, InputSpec((4,), dtype=torch.float64), seed=0)
    for parameter in network.parameters():
        parameter.data.fill_(7.0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in mine.state_dict().items())
    assert next(mine.parameters()).dtype == torch.float32
    assert mine.training


def test_a_copied_module_keeps_its_weights() -> None:
    mine = nn.Linear(4, 1)
    x = torch.randn(5, 4)
    assert torch.equal(build(mine, InputSpec((4,)), seed=0)(x), mine(x)[:, 0])


class ByClass(nn.Module):
    def __init__(self, spec: InputSpec) -> None:
        super().__init__()
        self.layer = nn.Linear(spec.size, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.flatten(1))[:, 0]


def test_a_class_and_a_factory_are_called_with_the_inputs_shape() -> None:
    for backbone in (ByClass, lambda spec: nn.Sequential(nn.Flatten(), nn.Linear(spec.size, 1))):
        assert build(backbone, InputSpec((2, 3)), seed=0)(torch.rand(5, 2, 3)).shape == (5,)


def test_an_import_path_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_networks_for_pue.py").write_text(
        "from torch import nn\ndef tiny(spec):\n    return nn.Linear(spec.size, 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    network = build("my_networks_for_pue:tiny", InputSpec((3,)), seed=0)
    assert network(torch.rand(5, 3)).shape == (5,)
    sys.modules.pop("my_networks_for_pue")


def test_scores_of_shape_n_1_become_vectors() -> None:
    # Also for a single row, whose (1, 1) a careless squeeze would make a number.
    network = build(lambda spec: nn.Linear(3, 1), InputSpec((3,)), seed=0)
    assert network(torch.rand(5, 3)).shape == (5,)
    assert network(torch.rand(1, 3)).shape == (1,)


def test_building_does_not_move_the_statistics_of_batch_norm() -> None:
    network = build("mlp", InputSpec((4,)), seed=0)
    counts = [b for name, b in network.named_buffers() if name.endswith("num_batches_tracked")]
    assert counts == [0] * 4
    assert network.training


# ---------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("width", [2, 3])
def test_another_number_of_outputs_is_refused(width: int) -> None:
    with pytest.raises(InvalidInput, match=rf"for 2 rows it gave \(2, {width}\)\. End it with nn\.Linear\(width, 1\)"):
        build(nn.Linear(3, width), InputSpec((3,)), seed=0)


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown backbone 'resnet-50'\. Did you mean 'resnet50'\? Available: auto, cnn13"
    ):
        build("resnet-50", InputSpec((3, 32, 32)), seed=0)


@pytest.mark.parametrize("path", ["no_such_package.nets:tiny", "math:no_such_factory", ":tiny", "math:"])
def test_what_cannot_be_imported_is_refused_with_a_remedy(path: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot import the backbone '.*'package\.module:factory' and check"):
        build(path, InputSpec((3,)), seed=0)


def test_a_factory_that_gives_no_module_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"gave a int, not a torch\.nn\.Module"):
        build(lambda spec: 3, InputSpec((3,)), seed=0)


def test_what_is_no_backbone_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"a name, an nn\.Module or a callable .* got 3"):
        build(3, InputSpec((3,)), seed=0)


@pytest.mark.parametrize("name", ["cnn13", "fast_cnn", "resnet50"])
def test_tables_into_a_cnn_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"'{name}' needs images .* shape \(784,\)\. Reshape them, or use 'mlp'"):
        build(name, InputSpec((784,)), seed=0)
