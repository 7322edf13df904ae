"""What scikit-learn asks of a classifier that is fitted and stays as it is: tags, classes, `clone`; and HTML."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import ClassifierTags, Tags, TargetTags

from pue.errors import InvalidInput
from pue.estimators.vectorizer.vectorize import Vectorizer
from pue.judging.estimates import ESTIMATED
from pue.judging.notebooks import as_html


class FittedClassifier:
    """Beside `predict` and `predict_proba`: pipelines, permutation importance and displays of scikit-learn take it."""

    vectorizer: Vectorizer | None
    summary: dict[str, Any]
    threshold: float
    rule: str

    _estimator_type = "classifier"

    @property
    def classes_(self) -> NDArray[np.int64]:
        return np.array([0, 1])

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Columns that are looked at; an error for images."""
        if self.vectorizer is None:
            raise AttributeError("a model of images has no columns.")
        return np.array(list(self.vectorizer.columns), dtype=object)

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """A model is fitted by `pue fit` and then stays as it is."""
        raise InvalidInput("this model is fitted already and does not change. Fit another: pue fit, or PUClassifier.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """None: there is nothing to set."""
        return {}

    def set_params(self, **params: Any) -> Self:
        if params:
            raise InvalidInput(f"a fitted model has no parameters to set; got {', '.join(params)}.")
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = Tags(estimator_type="classifier", target_tags=TargetTags(required=True))
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.input_tags.string = tags.input_tags.allow_nan = tags.input_tags.categorical = self.vectorizer is not None
        return tags

    def _repr_html_(self) -> str:
        data, metrics = self.summary.get("data", {}), self.summary.get("metrics", {})
        facts = {
            "learnt from": f"{data.get('n_rows', 0):,} rows, {data.get('n_labeled', 0):,} of them labeled",
            "method": self.summary.get("method", {}).get("display", ""),
            "share of positives": f"{self.summary.get('prior', {}).get('value', float('nan')):.3f}",
            "threshold": f"{self.threshold:.3f} ({self.rule})",
        }
        for name, title in ESTIMATED.items():
            found = metrics.get("values", {}).get(name, {})
            if found.get("value") is not None and found.get("low") is not None:
                facts[title] = f"{found['value']:.1%} [{found['low']:.1%}, {found['high']:.1%}]"
        return as_html("Model of pue fit; metrics estimated without negatives", facts)
