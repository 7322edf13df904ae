"""Hand-made mutants: does the suite notice when the mathematics is wrong?  Run `python tests/mutants.py`.

Each mutant replaces one piece of text in a copy of `src/pue` by a plausible mistake (a lost term, the wrong
normaliser, a flipped sign) and runs the tests that should notice, against that copy. A mutant that survives is a
missing test. The same tests must also pass on an unchanged copy: a test that always fails would kill everything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pue"
AT_A_TIME = 2
TIMEOUT = 900


@dataclass(frozen=True)
class Mutant:
    file: str
    old: str
    new: str
    breaks: str
    test: str


# Where a file has very many tests, only those that should notice are named.
OWN_ROWS = "test_crossfit.py::test_no_labeled_row_is_judged_by_a_model_that_saw_it_or_its_copy"
FOLD_SCALE = "test_crossfit.py::test_every_fold_expects_as_many_labels_as_it_has"
POOL = "test_crossfit.py::test_the_pool_trusts_the_member_whose_held_out_labels_are_likely"
SHARES = "test_crossfit.py::test_shares_maximise_the_likelihood_of_the_mixture"
COUNTS = "test_crossfit.py::test_neighbors_count_as_a_loop_does"
SMOOTHING = "test_crossfit.py::test_smoothing_takes_the_size_with_the_smallest_leave_one_out_error"
READINGS = "test_crossfit.py::test_every_reading_of_the_regulariser_is_the_written_one"
TRIMMING = "test_crossfit.py::test_the_trimming_threshold_minimises_the_variance"
PUBN = "test_risks.py::test_pubn_equals_its_twin"
COLUMN = "test_risks.py::test_refuses_a_column_of_scores"
STAGES = "test_method_stages.py"
STRAYS = "test_communities.py::test_strays_among_negatives_get_the_mean_of_all_positives"
ACCEPTED = "test_communities.py::test_groups_are_accepted_until_the_prior_is_reached"
TREES = "test_growth.py"
BLEND = "test_blend.py"
REDUCE = "test_risks.py::test_sums_over_two_halves_add_up_to_the_sums_over_the_whole"
IMBALANCED = "test_risks.py::test_imbalanced_equals_its_twin"
DIST_PU = "test_risks.py::test_dist_pu_equals_its_twin"
EXPECTATION = "test_batches.py::test_the_sums_of_a_batch_have_those_of_the_sample_as_expectation"
STANDARDIZED = "test_backbones.py::test_tables_are_standardised_inside_the_network"
CONSTANT = "test_backbones.py::test_constant_features_are_harmless"


MUTANTS = [
    # communities and what a risk wants
    Mutant("propensity/tally.py", "others = labels - counted(own[here], mass[here], len(labels))", "others = labels",
           "a row's own label counted", "test_communities.py::test_a_label_does_not_count_for_its_own_row"),
    Mutant("propensity/communities.py", "torch.where(named, rates, self.stray).mean(1)", "rates.mean(1)",
           "strays weighted as negatives", STRAYS),
    Mutant("propensity/likely.py", "weight = self.labeled_mass / e", "weight = self.labeled_mass",
           "rounds that do not weigh by what they found", "test_likely.py"),
    Mutant("propensity/likely.py", "self.counted, themselves=True)", "self.counted)",
           "a labeled row counts itself", "test_likely.py"),
    Mutant("propensity/likely.py", "wanted = self.prior * self.mass.sum() -", "wanted = self.mass.sum() -",
           "every row is a likely positive", "test_likely.py"),
    Mutant("propensity/naming.py", "order = np.argsort(-rate", "order = np.argsort(rate",
           "groups with the fewest labels first", ACCEPTED),
    Mutant("propensity/graph.py", "+ sparse.identity(n, format=\"csr\")", "+ 0 * sparse.identity(n, format=\"csr\")",
           "a row is no neighbor of itself", "test_communities.py::test_nearest_and_the_graph_are_those_of_a_loop"),
    Mutant("core/folds.py", "return least[member]", "return hashes",
           "groups parted", "test_folds.py::test_rows_of_a_group_share_a_fold_whatever_the_group_is_called"),
    Mutant("core/minimizer.py", "return _by_sign(pi * m, q - pi * m, q)", "return _by_sign(pi * m, q, q)",
           "the negative weight of labeled rows", "test_minimizer.py::test_nothing_on_a_grid_has_a_lower_risk"),
    # losses
    Mutant("core/losses.py", "return torch.sigmoid(-margin)", "return torch.sigmoid(margin)",
           "sign of the margin", "test_losses.py"),
    Mutant("core/losses.py", "torch.maximum(-margin, ((1 - margin) / 2).clamp(min=0))",
           "((1 - margin) / 2).clamp(min=0)",
           "double hinge without its second slope", "test_losses.py"),
    # weights
    Mutant("core/weights.py",
           'propensity, sample_weight)\n    return _against_background(prior * _normalized(mass, "labeled")',
           "propensity, sample_weight)\n    return _against_background(prior * mass / len(propensity)",
           "PUe normalised by n_P, not by Σ 1/e", "test_weights.py"),
    Mutant("core/weights.py", "[labeled] / propensity.double()", "[labeled] * propensity.double()",
           "weights by the propensity, not by its inverse", "test_unbiasedness.py"),
    Mutant("core/weights.py", "background(labels, scenario, sample_weight) - positive)",
           "background(labels, scenario, sample_weight))",
           "uPU that silently drops −π ℓ(−g)", "test_unbiasedness.py"),
    Mutant("core/weights.py", "n = (_row_mass(labels, sample_weight) * population_rows(labels, scenario)).sum()",
           "n = _row_mass(labels, sample_weight).sum()",
           "IPW divides by all rows in case-control", "test_weights.py"),
    Mutant("core/weights.py",
           "_normalized(_row_mass(labels, sample_weight) * population_rows(labels, scenario)",
           "_normalized(_row_mass(labels, sample_weight)",
           "background with the labeled rows in case-control", "test_oracles.py"),
    Mutant("core/weights.py", "labeled_region = sigma > eta", "labeled_region = sigma >= eta",
           "PUbN's threshold on the wrong side", PUBN),
    Mutant("core/weights.py", "weights.background * far", "weights.negative * far",
           "PUbN's last term without the labeled rows", PUBN),
    Mutant("core/weights.py", "negatives * (1 + odds)", "negatives * odds",
           "PUbN forgets ℓ(−g) of the biased negatives", PUBN),
    Mutant("core/weights.py", "return rho * _normalized(mass, \"labeled negative\")",
           "return rho * mass / chosen.sum()",
           "PUbNe's negatives not normalised", "test_weights.py"),
    Mutant("core/weights.py", "weights.negative - negatives", "weights.negative",
           "PUbN's σ step without −ρ ℓ(−f)", "test_weights.py"),
    Mutant("core/weights.py", "weights.sum().square() / weights.square().sum()", "1 / weights.square().sum()",
           "Kish's size of weights that do not sum to one", "test_weights.py"),
    Mutant("core/weights.py", "return sample_weight.double()", "return torch.ones(len(labels), dtype=torch.float64)",
           "sample weights ignored", "test_weights.py"),
    Mutant("core/weights.py", "tau * (1 - prior - rho) * (len", "tau * (1 - prior) * (len",
           "PUbN's quantile without ρ", "test_weights.py"),
    # corrections
    Mutant("core/corrections.py", "ascent = -gamma * negative", "ascent = gamma * negative",
           "nnPU descends where it should climb", "test_corrections.py"),
    Mutant("core/corrections.py", "return ascent + (positive - beta - ascent).detach()",
           "return positive - beta + ascent - ascent.detach()",
           "R⁺ takes part in the step of ascent", "test_corrections.py"),
    Mutant("core/corrections.py", "(positive - beta - ascent).detach()", "(positive - ascent).detach()",
           "nnPU reports R⁺ instead of R⁺ − β", "test_corrections.py"),
    Mutant("core/corrections.py", "if not negative < -beta:", "if not negative < 0:",
           "nnPU's switch ignores β", "test_corrections.py"),
    # risks
    Mutant("core/risks.py", "weights.negative @ loss(-scores)", "weights.negative @ loss(scores)",
           "negative part with the loss of positives", "test_oracles.py"),
    Mutant("core/risks.py",
           "        require_vector(\"scores\", scores, len(weights.positive))\n        return torch.stack(",
           "        return torch.stack(",
           "scores (n, 1) accepted", COLUMN),
    Mutant("core/risks.py", "self.combine(reduce(self.sums(scores, weights)))",
           "reduce(self.combine(self.sums(scores, weights)))",
           "corrects before it reduces", REDUCE),
    Mutant("core/risks.py", "(1 - target) / (1 - prior)", "(1 - target)",
           "ImbPU's negative part not rescaled", IMBALANCED),
    Mutant("core/risks.py", "(sums[1] - prior).abs() / (2 * prior)", "(sums[1] - prior).abs() / prior",
           "Dist-PU's balance of its two terms", "test_oracles.py"),
    Mutant("core/risks.py", "weights.background @ probability", "weights.negative @ probability",
           "Dist-PU's predicted share without w⁺", "test_oracles.py"),
    Mutant("core/risks.py", "binary_entropy(scores.clamp(-10, 10))", "binary_entropy(scores)",
           "Dist-PU's entropy of unclamped scores", DIST_PU),
    # methods of several stages
    Mutant("methods/distpu.py", "torch.where(self.labeled[rows], 1.0, fresh)", "fresh",
           "Dist-PU forgets which rows are labeled", STAGES),
    Mutant("methods/distpu.py", "blend(self.pseudo[batch.rows].to(mixed))", "self.pseudo[batch.rows].to(mixed)",
           "Dist-PU blends rows but not their pseudo-labels", STAGES),
    Mutant("methods/teacher.py", "torch.where(self.labeled, 1.0, kept_mean)", "kept_mean",
           "the teacher forgets which rows are labeled", STAGES),
    Mutant("methods/teacher.py", "(said + said[self.near].sum(1)) / (1 + self.near.shape[1])", "said",
           "neighbors are not heard", STAGES),
    Mutant("training/averages.py", "lerp_(source[name], 1 - decay)", "lerp_(source[name], decay)",
           "a slow average that is quick", STAGES),
    Mutant("core/alike.py", "torch.argsort(gain / cost", "torch.argsort(cost / gain",
           "the dearest rows are won first", "test_alike.py"),
    # tables: class and labeling together, the prior's clues, metrics with their doubts
    Mutant("propensity/joint.py", "hidden = f * (1 - e) / np.maximum(1 - f * e, 1e-12) if self.single else f",
           "hidden = f", "the posterior of an unlabeled row forgets that it was not labeled", "test_joint.py"),
    Mutant("propensity/joint.py", "rate = torch.from_numpy(self.as_rate(e[seen]))[rows.labeled]",
           "rate = torch.from_numpy(np.ones_like(e[seen]))[rows.labeled]",
           "the forests of the EM do not weigh by 1/e", "test_joint.py"),
    Mutant("priors/clues.py", "below = others.cumsum() - others / 2", "below = others.cumsum()",
           "ties count as won in the AUC of the scores", "test_clues.py"),
    Mutant("judging/worlds.py",
           "self._tilted((1 - share) * believed[which] + share * self.prior * where, tilt, float(prior))",
           "(1 - share) * believed[which] + share * self.prior * where",
           "a hidden bias does not widen the intervals", "test_worlds.py"),
    Mutant("judging/worlds.py", "(1 - share) * believed[which] + share * self.prior * where", "believed[which]",
           "five labels that are all called prove a recall of one", "test_worlds.py"),
    Mutant("judging/worlds.py", "(flagged / recall).min()", "(flagged / recall).max()", "the loosest of limits",
           "test_worlds.py"),
    Mutant("judging/worlds.py", "replace(self, prior=self.plain_prior,", "replace(self, prior=self.prior,",
           "labels as they are at a prior that they rule out", "test_worlds.py"),
    Mutant("judging/curves.py", "np.clip(flagged + world.model * self.spread, 0, 1)", "flagged",
           "models of folds are all alike", "test_worlds.py"),
    Mutant("judging/curves.py", "np.std(shares, axis=0, ddof=1)", "np.std(shares, axis=0, ddof=1) / len(shares) ** 0.5",
           "the error of the mean of models, not their spread", "test_worlds.py"),
    Mutant("judging/estimates.py", "if lowest * share - whole > error:", "if lowest * share - whole > 1:",
           "a prior that cannot be is not said", "test_worlds.py"),
    Mutant("priors/clues.py", "low = min(low, lowest / MOST_LABELED)", "pass",
           "rare positives are outside of the interval", "test_clues.py"),
    Mutant("app/audit/record.py", "    if not all(whole):", "    if not any(whole):",
           "a forged plan is believed", "test_audit_files.py"),
    Mutant("judging/worlds.py", "positive * np.exp(-tilt * self._depth)", "positive * np.exp(tilt * self._depth)",
           "a hidden bias flatters", "test_worlds.py"),
    Mutant("judging/worlds.py", "found, open_ = np.minimum(held, room), held > 0",
           "found, open_ = held.copy(), held > 0",
           "more positives than rows in a bin", "test_worlds.py"),
    Mutant("propensity/joint.py", "if self.certainty(self.raised(e, k)) >= least), 0.0)", "if True), 0.0)",
           "a correction that makes the class uncertain is taken", "test_joint.py"),
    Mutant("diagnosis/drivers.py", "if clear[column]:", "if True:", "columns are named by chance", "test_diagnose.py"),
    Mutant("diagnosis/drivers.py", "return inverse @ differences, error", "return differences, error",
           "a column that goes along with the driver is named", "test_diagnose.py"),
    Mutant("judging/curves.py", "np.minimum(1.0, flagged / prior)", "np.ones_like(flagged)",
           "more positives found than rows called positive", "test_estimates.py"),
    Mutant("trees/growth.py", "negative = np.maximum(self.background - self.positive, 0)",
           "negative = np.abs(self.background - self.positive)",
           "the sign of a leaf's negative weight lost", TREES),
    Mutant("trees/growth.py", "return np.clip(share, 0, 1)", "return share",
           "leaves that hold more than all", TREES),
    Mutant("trees/forest.py", "positive, background = weights.positive.numpy(), weights.background",
           "positive, background = weights.positive.numpy(), weights.negative",
           "background without the labeled rows' weight", TREES),
    Mutant("trees/growth.py", "left.mass >= min_leaf) & (right.mass >= min_leaf)", "left.mass >= min_leaf)",
           "leaves with too few rows on the right", TREES),
    Mutant("trees/growth.py", "goes_left = ~alone & (moved < split.risk - TIE)",
           "goes_left = ~alone & (moved > split.risk + TIE)",
           "rows without the feature take the worse side", "test_missing.py"),
    Mutant("trees/growth.py", "goes_right |= np.isnan(seen) & ~np.repeat(split.missing_left, nodes.sizes)",
           "goes_right |= np.isnan(seen)",
           "rows without the feature grow on the right, wherever they are scored", "test_missing.py"),
    Mutant("trees/gradient.py", "-self.positive * (1 - p), self.background * p",
           "-self.positive, self.background * p",
           "labeled rows that stand alone pull without end", "test_gradient.py"),
    Mutant("trees/gradient.py", "np.bincount(band, self.background - self.positive, BANDS) < 0",
           "np.bincount(band, self.background - self.positive, BANDS) > 0",
           "the correction where nothing is outweighed", "test_gradient.py"),
    Mutant("trees/boosting.py", "if risk < best:", "if True:",
           "the last round instead of the best", "test_boosting.py"),
    Mutant("trees/boosted.py", "kind & _DEFAULT_LEFT, threshold >= 0", "kind & _DEFAULT_LEFT, threshold < 0",
           "missing values that training had not seen on the wrong side", "test_boosting.py"),
    Mutant("trees/blend.py", "gradient[:n] += 2 * pull * away", "gradient[:n] += pull * away",
           "half the gradient of the pull", f"{BLEND}::test_the_gradient_is_that_of_the_risk"),
    Mutant("trees/blend.py", "bounds = [(0.0, MOST)] * n", "bounds = [(0.0, None)] * n",
           "shares that grow without end", f"{BLEND}::test_shares_stay_where_labels_outweigh_the_rows"),
    Mutant("trees/blend.py", "members(data.take(seen), _as_much(weights, seen)", "members(data, weights",
           "members that have seen what they score",
           f"{BLEND}::test_no_member_has_seen_what_it_scores_for_the_shares"),
    Mutant("trees/blend.py", "positive[there] ** 2 / mass[there]", "positive[there] ** 2",
           "a row of weight k for one label", f"{BLEND}::test_how_many_labels_they_are_worth"),
    Mutant("trees/blended.py", "model.start - VOTE * model.shares[0] / 2", "model.start",
           "explanations that do not sum to the score",
           f"{BLEND}::test_explanations_are_the_shares_of_the_members"),
    Mutant("trees/ridge.py", "mass[positive > 0].sum() / positive.sum()", "1 / positive.sum()",
           "all labels of a contest for one", f"{BLEND}::test_the_line_is_that_of_scikit_learn_on_the_pooled_rows"),
    Mutant("trees/nodes.py", "(child <= nodes) | (child >= ends)", "child >= ends",
           "a folder whose trees go in circles", "test_nodes.py"),
    Mutant("methods/pubn.py", "region = pubn_region(weights, negatives)", "region = weights",
           "PUbN's region without the labeled negatives", STAGES),
    Mutant("methods/thresholds.py", "top - math.log(4)", "top - math.log(2)",
           "the anchor takes r / k for P(positive)", STAGES),
    Mutant("methods/selfpu.py", "useful = gain.clamp(min=0)", "useful = (-gain).clamp(min=0)",
           "Self-PU's calibration with the sign of the published code", STAGES),
    Mutant("methods/vpu.py", "return sums[0].log() + sums[1]", "return sums[0] + sums[1]",
           "VPU without its logarithm", STAGES),
    Mutant("core/decisions.py", "ignorance = crowding + sides", "ignorance = crowding - sides",
           "the most informative threshold counts sizes the wrong way", STAGES),
    Mutant("training/processes.py", "distributed.all_reduce(total)", "total",
           "each process corrects its own part of a batch", "test_processes.py"),
    Mutant("training/processes.py", "torch.stack(parts, dim=1)", "torch.stack(parts, dim=0)",
           "rows of other processes in the wrong order", "test_processes.py"),
    Mutant("training/streamed.py", "1 / max(1, n_batch)", "1 / max(1, own + 1)",
           "streamed rows weigh more than all of them", "test_stream.py"),
    Mutant("training/streamed.py", "share[len(index) :] *= self._n", "share[len(index) :] *= 1",
           "streamed rows stand for one row each", "test_stream.py"),
    Mutant("app/stream.py", "(found.hashes >= self.threshold)", "(found.hashes >= 0)",
           "rows that judge a model are streamed to it", "test_stream.py"),
    Mutant("app/stream.py", "pieces))[rank::size]", "pieces))",
           "every process streams all rows", "test_stream.py"),
    Mutant("app/sources/columnar.py", "file.require_same()  # a file that", "pass  # a file that",
           "a file that was overwritten is called damaged", "test_stream.py"),
    Mutant("propensity/smooth.py", "distance[torch.arange(len(rows)), rows] = torch.inf", "pass",
           "a row is its own neighbor", "test_crossfit.py"),
    Mutant("training/loop.py", '"objective": dict(self.objective.state_dict()),', '"objective": {},',
           "pseudo-labels are not part of a checkpoint", STAGES),
    Mutant("propensity/pool.py", "below[k] / (prior - certain[k])", "below[k] / prior",
           "rows that are surely positive do not count toward the prior", "test_crossfit.py"),
    Mutant("propensity/patches.py", "whitened @ self.patterns.T - 0.5)", "whitened @ self.patterns.T)",
           "every pattern is everywhere", "test_patches.py"),
    Mutant("features/agreement.py", '.fill_diagonal_(float("-inf"))', ".fill_diagonal_(1.0)",
           "a view is its own likeliest partner", "test_features.py"),
    Mutant("features/views.py", "torch.where(draw[4] < 0.5, -width, width)", "torch.where(draw[4] < 0.5, width, width)",
           "no view is mirrored", "test_features.py"),
    Mutant("backbones/stored.py", "self.encoder.train(mode and not self.frozen)", "self.encoder.train(mode)",
           "what is frozen learns the statistics of batches", "test_features.py"),
    Mutant("features/recipe.py", "digest.update(images.cpu().contiguous().numpy().data)", "pass",
           "other images have the same encoder", "test_features.py"),
    # theory
    Mutant("core/theory.py", "(n_positive - total) / total * unnormalized", "(n_positive / total) * unnormalized",
           "normalisation identity", "test_theory.py"),
    Mutant("core/theory.py", "n_positive if safe else total", "total if safe else n_positive",
           "safe and printed bound exchanged", "test_theory.py"),
    Mutant("core/theory.py", "(estimated - inverse) * (h.double() - mean)", "(estimated - inverse) * h.double()",
           "estimation identity without μ_e", "test_theory.py"),
    Mutant("core/theory.py", "propensity / estimate * (total / estimated_total)", "propensity / estimate",
           "bias of normalised weights without the normalisers", "test_unbiasedness.py"),
    # without negatives
    Mutant("judging/estimates.py", "accuracy = 1 - prior - flagged + 2 * prior * recall",
           "accuracy = 1 - flagged + prior * recall", "accuracy without its identity", "test_estimates.py"),
    Mutant("judging/estimates.py", "precision = prior * recall / flagged", "precision = recall / flagged",
           "precision without the prior", "test_estimates.py"),
    Mutant("judging/estimates.py", "below = background.cumsum() - background / 2", "below = background.cumsum()",
           "ties count whole", "test_estimates.py"),
    Mutant("judging/worlds.py", "np.where(step < 0, self.prior - low, high - self.prior) * step", "0 * step",
           "a doubtful prior is ignored", "test_estimates.py"),
    Mutant("judging/estimates.py", "weight[kept].min() / weight[kept], gamma",
           "weight[kept] / weight[kept].max(), gamma", "worst case over weights upside down", "test_estimates.py"),
    Mutant("judging/scorers.py", "found.trivial and self.metric not in RANKING", "False",
           "a trivial predictor gets a good score", "test_estimates.py"),
    Mutant("judging/calibration.py", "positive @ z, torch.tensor", "background @ z, torch.tensor",
           "calibration pulled up by everything", "test_calibration.py"),
    Mutant("judging/calibration.py", "max(float(beta[0]), 0.0)", "float(beta[0])",
           "calibration may turn the order around", "test_calibration.py"),
    Mutant("core/decisions.py", "hits >= precision * called - 1e-12", "hits >= precision * hits[-1]",
           "recall sold as precision", "test_decisions.py"),
    Mutant("judging/curves.py", "prior * positive, background", "positive, background", "reliability without the prior",
           "test_curves.py"),
    Mutant("estimators/wrapper.py", "weights.positive[labeled], weights.background[population]",
           "weights.background[labeled], weights.background[population]", "the wrapper forgets the weights",
           "test_wrapper.py"),
    # decisions and metrics
    Mutant("core/decisions.py", "(scores >= threshold)", "(scores > threshold)",
           "a score at the threshold is negative", "test_decisions.py"),
    Mutant("core/decisions.py", "torch.where(choice, f1, -torch.inf).argmax()", "f1.argmax()",
           "best F1 splits ties", "test_decisions.py"),
    Mutant("core/decisions.py", "2 * hits / (hits[-1] + called)", "2 * hits / called",
           "precision sold as F1", "test_decisions.py"),
    Mutant("judging/truth.py", "roc_auc_score(truth, scores.numpy())", "roc_auc_score(truth, called)",
           "hard AUC sold as AUC", "test_truth.py"),
    Mutant("judging/truth.py", "precision * recall + (1 - recall) * prior", "precision * recall",
           "hard AP without its second term", "test_truth.py"),
    Mutant("judging/truth.py", "(flagged - hits) / (1 - share)", "(flagged - hits) / share",
           "specificity over the positives", "test_truth.py"),
    # labeling and data
    Mutant("bench/labeling.py", "min(1.0, number / max(size, 1))", "shares[names.index(name)]",
           "class shares taken for propensities", "test_labeling.py"),
    Mutant("bench/labeling.py", "torch.cat([index, torch.arange(len(y))])",
           "torch.cat([index, torch.tensor(sorted(set(range(len(y))) - set(index.tolist())))])",
           "case-control without copies in U", "test_labeling.py"),
    Mutant("bench/labeling.py", "rng.random(len(positives)) < propensity", "rng.random(len(positives)) < frequency",
           "labels are SCAR while the truth says biased", "test_labeling.py"),
    Mutant("core/data.py", "return labels == 0\n\n\ndef select", "return labels != 1\n\n\ndef select",
           "labeled negatives in case-control's background", "test_data.py"),
    # batches and inputs
    Mutant("training/batches.py", "torch.full((total,), n / size, ", "torch.full((total,), 1.0, ",
           "labeled rows of a batch not rescaled", EXPECTATION),
    Mutant("training/batches.py", "reach[-1] / (size * weights[chosen])", "reach[-1] / weights[chosen]",
           "drawn rows counted once for each place", EXPECTATION),
    Mutant("training/batches.py", "len(rows) / max(1, int(here.sum()))", "1.0",
           "joint batches not rescaled", EXPECTATION),
    Mutant("backbones/inputs.py", "return (x - self.mean) * self.inverse_std", "return x - self.mean",
           "features not brought to one scale", STANDARDIZED),
    Mutant("backbones/inputs.py", "torch.where(varies, 1 / std, 0.0)", "(1 / std)",
           "constant features divided by zero", CONSTANT),
    # propensities
    Mutant("propensity/crossfit.py", "data.take(fold != k)", "data.take(fold >= 0)",
           "folds that see their own rows", OWN_ROWS),
    Mutant("propensity/crossfit.py", "mass[data.labeled & (fold == k)].sum() / expected",
           "mass[fold == k].sum() / expected",
           "folds scaled to rows instead of labels", FOLD_SCALE),
    Mutant("propensity/pool.py", "p = propensity / (1 + propensity) if", "p = propensity if",
           "odds taken for probabilities", POOL),
    Mutant("propensity/pool.py", "-(weight / mixed) @ like", "(weight / mixed) @ like",
           "shares by the least likely mixture", SHARES),
    Mutant("propensity/neighbors.py", "(labels + 0.5) / (rows + 0.5 / self.rate)", "(labels + 0.5) / (rows + 0.5)",
           "empty balls drawn to one half", COUNTS),
    Mutant("propensity/smooth.py", "distance[torch.arange(len(rows)), rows] = torch.inf", "pass",
           "a row predicts itself", SMOOTHING),
    Mutant("propensity/network.py", '"sum_batch": float(size)', '"sum_batch": 1.0',
           "the sum over a batch is its mean", READINGS),
    Mutant("propensity/network.py", 'in ("full_mean", "sum_scaled") else None', 'in ("full_mean",) else None',
           "the literal sum aims at the batch's labels", READINGS),
    Mutant("propensity/clipping.py", "keep = 1 / ordered <= 2 * mean", "keep = 1 / ordered <= mean",
           "trimming without its factor two", TRIMMING),
    Mutant("core/risks.py", "gap = sums[2] - (sums[3]", "gap = sums[2] + (sums[3]",
           "the regulariser pulls ê to minus the labels", READINGS),
    # selection
    Mutant("core/criteria.py", "mass.cumsum(0) - mass / 2", "mass.cumsum(0) - mass",
           "ties lose", "test_criteria.py"),
    Mutant("core/criteria.py", "float(2 * hits + background", "float(hits + background",
           "proxy accuracy counts hits once", "test_criteria.py"),
    Mutant("core/criteria.py", "- prior / 2) / (1 - prior)", "- prior / 2) / prior",
           "the implied AUC over the positives", "test_criteria.py"),
    Mutant("training/loop.py", "if validation > self.best_validation", "if validation < self.best_validation",
           "the worst epoch is kept", "test_training.py"),
    Mutant("estimators/search.py", "seed=derive(exam.seed, done) % 2**32", "seed=exam.seed",
           "every trial proposes the same", "test_search.py"),
    # files
    Mutant("files/writing.py", "            _flush(partial)\n", "            pass\n",
           "a file gets its name before it is on the disk", "test_files.py"),
    Mutant("files/writing.py", "            os.replace(old, target)\n        raise", "            pass\n        raise",
           "the old folder is not put back", "test_files.py"),
    Mutant("files/writing.py", "        if not target.exists():\n", "        if target.exists():\n",
           "the folder that was set aside is not brought back", "test_files.py"),
    # audits
    Mutant("audit/score_test.py", "value = ratio.of(share * size)",
           "value = ratio.of(yes.sum(-1, keepdims=True) / n.sum() * size)",
           "an audit that forgets the inclusion probabilities",
           "test_audit.py::test_the_estimates_are_unbiased_over_all_samples"),
    Mutant("audit/score_test.py", "sd = np.sqrt((a * a * p * (1 - p)", "sd = np.sqrt((a * a * share * (1 - share)",
           "a variance of zero where no positive was found", "test_audit.py::test_the_statistic_is_that"
           "_of_the_likeliest_shares"),
    Mutant("audit/design.py", "return (self.drawn + self.before) / self.size", "return self.drawn / self.size",
           "a topped-up plan forgets its first rows",
           "test_audit.py::test_a_top_up_stays_a_random_sample_of_its_stratum"),
    Mutant("core/lesson.py", "answered[lesson.rows] = 1 / lesson.chance", "answered[lesson.rows] = 1",
           "answers count once, whatever their chance",
           "test_lesson.py::test_the_risk_of_the_answers_is_unbiased_whatever_the_labeling"),
    Mutant("core/lesson.py", "(float((omega**2).sum()) + doubt**2)", "float((omega**2).sum())",
           "estimated propensities are believed as if they were known",
           "test_lesson.py::test_the_share_minimises_the_squared_error"),
    Mutant("audit/design.py", "total += worth * square / random if random > 0 else 0", "total += worth * square",
           "the quantity with the largest variance takes all rows",
           "test_audit.py::test_a_plan_for_all_quantities_is_shorter_than_a_random_sample_in_each"),
    # the first hour
    Mutant("trees/shapley.py", "own[again, 1] = case[paths.before[level][again], 2]", "own[again, 1] = 1.0",
           "a player's earlier conditions are forgotten", "test_shapley.py::test_they_are_those_of_all_subsets"),
    Mutant("trees/shapley.py", "total[paths.parent[level][:half]] = total[level][:half] + total[level][half:]",
           "total[paths.parent[level][:half]] = total[level][:half]", "leaves to the right are lost",
           "test_shapley.py::test_they_are_those_of_all_subsets"),
    Mutant("app/budget.py", "np.where(step < 0, hits, (len(q) - misses[0], misses[1]))", "hits",
           "doubt makes hits fewer and never more", "test_budget.py"),
    Mutant("app/time_budget.py", "return pixels * epochs_in_all(data.n_rows, folds) / PIXELS", "return pixels / PIXELS",
           "held-out networks cost nothing", "test_time_budget.py::test_epochs_go_by_size"),
    Mutant("app/thumbnails.py", "len(address) <= LONGEST and _ADDRESS.fullmatch(address)", "_ADDRESS.match(address)",
           "anything may follow a picture", "test_page.py::test_thumbnails_stand_in_the_table_and_nothing_else_does"),
    Mutant("app/threshold.py", "target_precision(scores, held_out.believed_weights, precision)",
           "target_precision(scores, weights, precision)", "a target precision without the hidden bias",
           "test_model.py::test_a_target_precision_is_that_of_the_metrics"),
    Mutant("app/threshold.py", "own = fold == int(value)", "own = fold != int(value)",
           "a threshold is judged by the rows that chose it", "test_threshold.py"),
    Mutant("app/sources/queries.py", "read_only=base != IN_MEMORY", "read_only=False", "a query may drop tables",
           "test_addresses.py::test_what_is_no_query_is_refused"),
]  # fmt: skip


def mutate(folder: Path, change: Mutant | None) -> Path:
    """A copy of the library with one change, or with none."""
    copy = folder / "pue"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if change is not None:
        path = copy / change.file
        text = path.read_text()
        if text.count(change.old) != 1:
            raise SystemExit(f"{change.file}: found {text.count(change.old)} times, not once: {change.old!r}")
        path.write_text(text.replace(change.old, change.new))
    return copy


def where(test: str) -> str:
    """The path of a test that is named by its file alone, "test_risks.py::test_x": the names of files are unique."""
    file, separator, name = test.partition("::")
    (found,) = (ROOT / "tests").rglob(file)
    return f"{found}{separator}{name}"


def run(tests: set[str], change: Mutant | None = None) -> tuple[int, str]:
    """pytest's exit code and output on a mutated copy. tests/conftest.py refuses to run on any other copy."""
    with tempfile.TemporaryDirectory(prefix="pue-mutant-") as folder:
        copy = mutate(Path(folder), change)
        environment = {**os.environ, "PYTHONPATH": folder, "PUE_MUTATED_FOLDER": str(copy), "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # pytest would rewrite all of hypothesis on every run
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
        command += [where(test) for test in sorted(tests)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
        return done.returncode, done.stdout + done.stderr


def verdict(change: Mutant) -> str:
    """Killed: a test failed. Any other way to end, such as a mutant that cannot be imported, proves nothing."""
    code, output = run({change.test}, change)
    if code == 1:
        return "killed"
    return "SURVIVED" if code == 0 else f"BROKEN (pytest exit code {code})\n{output[-2000:]}"


def main() -> int:
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number, change in enumerate(MUTANTS):  # every text must be found before anything is run
            mutate(Path(folder) / str(number), change)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        baseline = pool.submit(run, {change.test for change in MUTANTS})
        verdicts = pool.map(verdict, MUTANTS)
        results = []
        for change, result in zip(MUTANTS, verdicts, strict=True):
            results.append(result)
            print(f"{result:<9} {change.file:<20} {change.breaks:<52} {change.test.partition('::')[0]}", flush=True)
        code, output = baseline.result()
    if code != 0:
        print(f"the tests do not pass on the unchanged library, so nothing above counts:\n{output[-3000:]}")
        return 1
    killed = results.count("killed")
    print(f"{time.monotonic() - start:.0f} s on {AT_A_TIME} processes")
    print(f"{killed} killed, {len(MUTANTS) - killed} survived")
    return int(killed < len(MUTANTS))


if __name__ == "__main__":
    raise SystemExit(main())
