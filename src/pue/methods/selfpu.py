"""Self-PU (Chen et al. 2020): nnPU, then rows the model is sure of, then two students that teach each other."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from pue.core.data import PUData, as_float, gather
from pue.core.losses import sigmoid as sigmoid_loss
from pue.core.randomness import derive
from pue.core.risks import Risk, binary_entropy, nnpu
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.methods.composition import pu_weights
from pue.methods.protocol import Fitted, Task
from pue.persistence import kept
from pue.training import Batch, Objective, StepRisk, score, step_risk
from pue.training.averages import follow
from pue.training.processes import place


@kept
@dataclass(frozen=True)
class SelfPU:
    """Stages are shares of the epochs, as in the authors' 200: warm-up 10, self-paced to 50, then mutual.

    As published, except for what their code gets wrong (a consistency loss that is always zero, a sign in the
    calibration, test inputs in training, best-on-test selection): here the teachers' loss is the squared difference of
    probabilities, calibration looks at held-out *training* rows, and the last epoch counts.
    """

    sure: tuple[float, float] = (0.4, 0.6)
    """How far each student goes: half of this share of the unlabeled rows is trusted at either end, at last."""
    warm_up: float = 0.05
    paced: float = 0.25
    growing: float = 0.5
    """The trusted set grows over this share of the epochs."""
    calibrate: bool = True
    most_entropy: float = 1 / 16
    """Σ of the entropy's weights in a batch, at most this share of its rows."""
    mutual: float = 0.1
    """The students' difference is used only while it is below this share of the loss."""
    summary: str = "Self-PU: self-paced nnPU and two students that teach each other"

    def fit(self, task: Task) -> Fitted:
        if place()[1] > 1:
            raise InvalidInput(
                "Self-PU cannot be trained by several processes: its calibration needs all rows of a batch. Train it "
                "in one process, or use another method."
            )
        students = Students(task.build(task.seed), task.build(derive(task.seed, 7)))
        weights = pu_weights(task.data, task.prior, task.propensity)
        objective = SelfPaced(self, task.data, nnpu(task.loss or sigmoid_loss), derive(task.seed, 8))
        return Fitted(students, task.train(students, weights, objective))


class Students(nn.Module):
    """Two networks and their slow averages; the score is the mean of the averages'."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.students = nn.ModuleList([first, second])
        self.teachers = deepcopy(self.students).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = torch.stack([teacher(x) for teacher in self.teachers]).mean(0)
        return scores

    def train(self, mode: bool = True) -> Self:
        """Teachers never learn from a batch, not even its statistics."""
        super().train(mode)
        self.teachers.eval()
        return self


class SelfPaced(Objective):
    """The loss of both students; which rows each of them trusts is a buffer, renewed at the start of an epoch."""

    terms = ("positive", "negative", "entropy", "consistency")
    lessons: Tensor
    trusted: Tensor
    held: Tensor

    def __init__(self, settings: SelfPU, data: PUData, risk: Risk, seed: int) -> None:
        super().__init__()
        self.options, self.risk, self.x = settings, risk, data.x
        self.unlabeled = torch.nonzero(data.unlabeled)[:, 0]
        generator = torch.Generator().manual_seed(seed)
        order = self.unlabeled[torch.randperm(len(self.unlabeled), generator=generator)]
        self.register_buffer("lessons", torch.zeros((), dtype=torch.int64))
        self.register_buffer("trusted", torch.zeros(2, data.n_rows, dtype=torch.bool))
        self.register_buffer("held", order[: max(1, min(2048, len(order) // 10))], persistent=False)

    def start_epoch(self, epoch: int, epochs: int, network: nn.Module) -> None:
        assert isinstance(network, Students)
        done = epoch / epochs
        if done < self.options.warm_up or (self._mutual(done) and bool(self.trusted.any())):
            return
        for student, module in enumerate(network.students):
            self._trust(student, module, min(done / self.options.growing, 1.0))

    def _mutual(self, done: float) -> bool:
        return done >= self.options.paced

    def _trust(self, student: int, network: nn.Module, grown: float) -> None:
        """From scratch each time, so rows leave again: the n surest at either end."""
        count = int(len(self.unlabeled) * 0.5 * grown * self.options.sure[student])
        order = self.unlabeled[score(network, self.x, self.unlabeled).argsort()]
        self.trusted[student] = False
        self.trusted[student, order[:count].to(self.trusted.device)] = True
        self.trusted[student, order[len(order) - count :].to(self.trusted.device)] = True

    def forward(self, batch: Batch) -> StepRisk:
        network = batch.network
        assert isinstance(network, Students)
        done = batch.epoch / batch.epochs
        self.lessons += self._mutual(done)
        slow = min(1 - 1 / (float(self.lessons) + 1), 0.999)  # until they are needed, teachers are copies
        follow(network.teachers, network.students, slow)
        value, corrected, sums = batch.x.new_zeros(()), False, []
        scores = [student(batch.x) for student in network.students]
        with torch.no_grad():
            taught = [torch.sigmoid(teacher(batch.x)) for teacher in network.teachers]
        apart = (torch.sigmoid(scores[0]) - torch.sigmoid(scores[1])).square()
        for student, own in enumerate(scores):
            part = self._paced(student, own, batch, calibrated=self._calibrates(done))
            difference = batch.reduce((batch.share @ (torch.sigmoid(own) - taught[student]).square())[None])[0]
            loss = part.value
            if self._mutual(done):
                disagreement = batch.reduce((batch.share @ apart)[None])[0]
                loss = loss + difference
                if disagreement.item() < self.options.mutual * loss.item():
                    loss = loss + disagreement
            value, corrected = value + loss, corrected or part.corrected
            sums.append(torch.cat([part.sums, difference[None]]))
        return StepRisk(value, torch.stack(sums).sum(0), corrected)

    def _calibrates(self, done: float) -> bool:
        return self.options.calibrate and self.options.warm_up <= done < self.options.paced

    def _paced(self, student: int, scores: Tensor, batch: Batch, *, calibrated: bool) -> StepRisk:
        """nnPU on the rows not trusted, the entropy of the prediction on those that are."""
        trusted = self.trusted[student, batch.rows].to(scores.dtype)
        to_risk, to_entropy = 1 - trusted, trusted
        if calibrated:
            assert isinstance(batch.network, Students)
            to_risk, to_entropy = self._calibrated(batch.network.students[student], batch, trusted)
        # The rows that leave the pool take their mass with them; the others stand in for it.
        weights = RowWeights(batch.weights.positive, _rescaled(batch.weights.negative, to_risk))
        part = step_risk(self.risk, scores, Batch(**{**vars(batch), "weights": weights}))
        entropy = batch.reduce(((batch.share * to_entropy) @ binary_entropy(scores))[None])
        return StepRisk(part.value + entropy[0], torch.cat([part.sums, entropy]), part.corrected)

    def _calibrated(self, network: nn.Module, batch: Batch, trusted: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of (risk, entropy) for every row: how much a step on each would lower the entropy of held-out rows.

        From weights of zero, the derivative of the held-out loss in the weight of row i is −⟨∇L, ∇ℓᵢ⟩. The gradient of
        Σ wᵢ ℓᵢ is linear in the weights, so one derivative of it along ∇L gives them all.
        """
        pick = torch.randint(len(self.held), (len(batch.x),), generator=batch.generator)
        held = as_float(gather(self.x, self.held[pick].cpu()).to(batch.x.device), batch.x.dtype)
        was_training = network.training
        network.eval()  # held-out rows and batch statistics do not mix
        parameters = [tensor for tensor in network.parameters() if tensor.requires_grad]
        slope = torch.autograd.grad(binary_entropy(network(held)).mean(), parameters)
        scores = network(batch.x)
        weight = scores.new_zeros(2, len(scores), requires_grad=True)
        losses = torch.stack([torch.sigmoid(scores), binary_entropy(scores)])  # ℓ(−g) of an unlabeled row, entropy
        step = torch.autograd.grad((weight * losses).sum(), parameters, create_graph=True)
        along = torch.stack([(one * other).sum() for one, other in zip(step, slope, strict=True)]).sum()
        (gain,) = torch.autograd.grad(along, weight)
        network.train(was_training)
        useful = gain.clamp(min=0)
        total = useful.sum(0)
        risk_share = torch.where(total > 0, useful[0] / total.clamp(min=torch.finfo(total.dtype).tiny), 1.0)
        risk_share = torch.where(trusted > 0, risk_share, 1.0)
        to_entropy = 1 - risk_share
        full = to_entropy.cumsum(0) > self.options.most_entropy * len(to_entropy)
        to_entropy = torch.where(full, 0.0, to_entropy)
        return 1 - to_entropy, to_entropy

    def settings(self) -> Any:
        return [repr(self.options), self.risk.terms]


def _rescaled(negative: Tensor, keep: Tensor) -> Tensor:
    """w⁻ of unlabeled rows times `keep`, scaled back to its mass; what is subtracted for labeled rows stays."""
    unlabeled = negative.clamp(min=0)
    kept = unlabeled * keep
    return kept * (unlabeled.sum() / kept.sum().clamp(min=torch.finfo(kept.dtype).tiny)) + negative.clamp(max=0)
