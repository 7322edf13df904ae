"""pu-toolbox: its classifiers with their defaults; nnPU with a network and a length of training that others share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from problems import Fitted, Method, Problem
from pu_toolbox.estimators.bias_aware.lbe import LBEClassifier
from pu_toolbox.estimators.bias_aware.pusb import PUSBClassifier
from pu_toolbox.estimators.bias_aware.pusb_kernel import PUSBKernelClassifier
from pu_toolbox.estimators.classic.elkan_noto import ElkanNotoClassifier
from pu_toolbox.estimators.deep.self_pu import SelfPUClassifier
from pu_toolbox.estimators.risk.dist_pu import DistPUClassifier
from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier
from pu_toolbox.estimators.risk.upu import UPUClassifier
from same import BATCH, EPOCHS, six_layers


def tool(make: Callable[[Problem, int], Any], *, case_control: bool = False, prior: bool = False) -> Method:
    """`prior`: the class prior goes to `fit`."""

    def fit(problem: Problem, seed: int) -> Fitted:
        given = {"class_prior": problem.prior} if prior else {}
        model = make(problem, seed).fit(problem.x, problem.s, **given)
        return Fitted(model.predict, model.decision_function)

    return Method(fit, case_control=case_control)


def nnpu(problem: Problem, seed: int, epochs: int = EPOCHS) -> Any:
    torch.manual_seed(seed)
    return NonNegativePUClassifier(
        six_layers(problem.x.shape[1]),
        class_prior=problem.prior,
        batch_size=BATCH,
        max_epochs=epochs,
        random_state=seed,
    )


METHODS = {
    "nnPU, 6 layers": tool(nnpu, case_control=True),
    "nnPU, 6 layers, 30 epochs": tool(lambda p, seed: nnpu(p, seed, 30), case_control=True),
    "uPU, linear": tool(lambda p, seed: UPUClassifier(p.prior, random_state=seed), case_control=True),
    "Dist-PU": tool(lambda p, seed: DistPUClassifier(p.prior, random_state=seed), case_control=True),
    "Self-PU": tool(lambda p, seed: SelfPUClassifier(p.prior, random_state=seed), case_control=True),
    "Elkan-Noto": tool(lambda p, seed: ElkanNotoClassifier(mode="probability_correction", random_state=seed)),
    "Elkan-Noto, retrained": tool(lambda p, seed: ElkanNotoClassifier(random_state=seed)),
    "PUSB": tool(lambda p, seed: PUSBClassifier(), prior=True),
    "PUSB, kernels": tool(lambda p, seed: PUSBKernelClassifier(random_state=seed), prior=True),
    "LBE": tool(lambda p, seed: LBEClassifier(), prior=True),
}
