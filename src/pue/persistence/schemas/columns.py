"""Schemas of what changes columns: scalers, imputers, components, encoders, words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import sklearn

from pue.errors import ModelError
from pue.persistence.schemas.parts import ANY, NUMBERS, TINY, WHOLE, Count, Names, Numbers, Sizes, Words, require
from pue.persistence.schemas.schema import FEATURES, Schema, Values

SEEN = Numbers(low=0, types=("float64", "int64", "int32"), scalar=True)
POSITIVE = Numbers(low=TINY, optional=True)
MOST_WORDS = 2**22
PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w+\b", r"\w+", r"\S+")
"""Of words. A file's own pattern could take longer than anybody lives."""


class Categories:
    """One array of values for each column: numbers in order (NaN last), or words."""

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        require(type(value) is list and len(value) == sizes["p"], at, "should be a list with one entry a column")
        for place, values in enumerate(value):
            own: Sizes = {}
            if isinstance(values, np.ndarray) and values.dtype == object:
                Names("c").checked(values, own, f"{at}[{place}]")
            else:
                Numbers(("c",), types=NUMBERS, infinite=True, missing=True).checked(values, own, f"{at}[{place}]")
            require(own["c"] > 0, at, "has a column without a category")
            items = [item for item in values.tolist() if item == item]
            in_order = all(low < high for low, high in pairwise(items)) or values.dtype == object
            require(in_order and len(set(items)) == len(items), at, "has categories twice, or out of order")
        return value


class Places:
    """For each column None, or whole numbers below the number of its categories."""

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        require(type(value) is list and len(value) == sizes["p"], at, "should be a list with one entry a column")
        for entry in value:
            if entry is not None:
                Numbers(("c",), 0, 2**31, types=WHOLE).checked(entry, {}, at)
        return value


def _imputed(imputer: Any) -> Values:
    for name in ("_fit_dtype", "_fill_dtype"):
        if np.dtype(vars(imputer).get(name, "float64")).name not in ("float32", "float64"):
            raise ModelError("a SimpleImputer of words cannot be saved: a model holds numbers. Let it fill numbers.")
    kind = np.dtype(imputer._fit_dtype).name
    statistics = np.asarray(imputer.statistics_, dtype=kind)  # those of a constant are objects
    return {"fill": kind, "missing": getattr(imputer.indicator_, "features_", None), "statistics_": statistics}


def _imputer(imputer: Any, found: Values) -> Values:
    kind, missing = np.dtype(found.pop("fill")), found.pop("missing")
    p = found["n_features_in_"]
    indicator = None
    if imputer.add_indicator:
        require(missing is not None and (missing < p).all(), "SimpleImputer", "marks columns that it does not have")
        indicator = sklearn.impute.MissingIndicator(missing_values=imputer.missing_values, error_on_new=False)
        vars(indicator).update(_precomputed=True, n_features_in_=p, _n_features=p, features_=missing)
    return {**found, "_fit_dtype": kind, "_fill_dtype": kind, "indicator_": indicator}


def _no_words(imputer: Any) -> None:
    numbers = (int, float, np.integer, np.floating)
    sound = isinstance(imputer.missing_values, numbers) and isinstance(imputer.fill_value, (*numbers, type(None)))
    require(sound and not isinstance(imputer.missing_values, bool), "SimpleImputer", "should fill numbers, not words")


def _as_objects(encoder: Any) -> Values:
    """Categories that numpy holds as text are kept as words; they compare alike."""
    values = [np.array(v.tolist(), dtype=object) if v.dtype.kind == "U" else v for v in encoder.categories_]
    return {"categories_": values}


def _hot_entries(encoder: Any) -> Values:
    dropped = encoder._drop_idx_after_grouping
    grouped = encoder._infrequent_enabled
    return {
        **_as_objects(encoder),
        "rare": [None if v is None else np.asarray(v) for v in encoder._infrequent_indices] if grouped else None,
        "places": [None if v is None else np.asarray(v) for v in encoder._default_to_infrequent_mappings]
        if grouped
        else None,
        "dropped": None if dropped is None else [None if place is None else int(place) for place in dropped],
    }


class _Optional:
    def __init__(self, part: Any) -> None:
        self.part = part

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        return None if value is None else self.part.checked(value, sizes, at)


class _Dropped:
    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        require(type(value) is list and len(value) == sizes["p"], at, "should be a list with one entry a column")
        require(all(place is None or type(place) is int for place in value), at, "should hold places")
        return value


def _hot(encoder: Any, found: Values) -> Values:
    rare, places, dropped = (found.pop(name) for name in ("rare", "places", "dropped"))
    categories = found["categories_"]
    grouped = encoder.min_frequency is not None or encoder.max_categories is not None
    require((rare is not None) == (places is not None) == grouped, "OneHotEncoder", "should say which are rare")
    values = {**found, "_infrequent_enabled": grouped}
    if grouped:
        for column, (few, place) in enumerate(zip(rare, places, strict=True)):
            _require_groups(few, place, len(categories[column]))
        values |= {"_infrequent_indices": rare, "_default_to_infrequent_mappings": places}
    vars(encoder).update(values)
    index = None if dropped is None else np.array(dropped, dtype=object)
    vars(encoder).update(_drop_idx_after_grouping=None)
    outs = encoder._compute_n_features_outs()
    sound = dropped is None or all(d is None or 0 <= d < n for d, n in zip(dropped, outs, strict=True))
    require(sound and (dropped is None) == (encoder.drop is None), "OneHotEncoder", "drops a category it does not have")
    vars(encoder).update(_drop_idx_after_grouping=index, drop_idx_=index)
    return {**values, "_n_features_outs": encoder._compute_n_features_outs()}


def _require_groups(few: Any, place: Any, n: int) -> None:
    require((few is None) == (place is None), "OneHotEncoder", "should say which are rare")
    if few is None:
        return
    sound = len(place) == n and 0 < len(few) <= n and (few < n).all() and len(set(few.tolist())) == len(few)
    require(sound, "OneHotEncoder", "groups categories that it does not have")
    frequent = np.setdiff1d(np.arange(n), few)
    wanted = np.full(n, len(frequent))
    wanted[frequent] = np.arange(len(frequent))
    require((place == wanted).all(), "OneHotEncoder", "puts its categories into columns that it does not have")


def _plain_hot(encoder: Any) -> None:
    sound = encoder.categories == "auto" and encoder.drop in (None, "first", "if_binary")
    require(sound and encoder.feature_name_combiner == "concat", "OneHotEncoder", "should find its own categories")


def _ordinal(encoder: Any, found: Values) -> Values:
    categories = found["categories_"]
    last = {i: len(c) - 1 for i, c in enumerate(categories) if c.dtype.kind == "f" and np.isnan(c[-1])}
    return {**found, "_missing_indices": last, "_infrequent_enabled": False}


def _plain_ordinal(encoder: Any) -> None:
    sound = encoder.categories == "auto" and encoder.min_frequency is None and encoder.max_categories is None
    require(sound, "OrdinalEncoder", "should find its own categories and group none of them")


def _vocabulary(vectorizer: Any) -> Values:
    words = np.empty(len(vectorizer.vocabulary_), dtype=object)
    for word, place in vectorizer.vocabulary_.items():
        words[place] = word
    weights = getattr(getattr(vectorizer, "_tfidf", None), "idf_", None)
    return {"words": words, "rarity": weights} if hasattr(vectorizer, "_tfidf") else {"words": words}


def _counter(vectorizer: Any, found: Values) -> Values:
    words = found["words"].tolist()
    require(0 < len(set(words)) == len(words) <= MOST_WORDS, type(vectorizer).__name__, "has a word twice, or none")
    places = {word: place for place, word in enumerate(words)}
    return {"vocabulary_": places, "fixed_vocabulary_": False, "_stop_words_id": id(vectorizer.stop_words)}


def _weigher(vectorizer: Any, found: Values) -> Values:
    settings = {name: getattr(vectorizer, name) for name in ("norm", "use_idf", "smooth_idf", "sublinear_tf")}
    weights = sklearn.feature_extraction.text.TfidfTransformer(**settings)
    require((found["rarity"] is not None) == bool(vectorizer.use_idf), "TfidfVectorizer", "should have its weights")
    weights.n_features_in_ = len(found["words"])
    if vectorizer.use_idf:
        weights.idf_ = found["rarity"]
    return {**_counter(vectorizer, found), "_tfidf": weights}


def _plain_words(vectorizer: Any) -> None:
    """Rows are texts, never names of files, and nothing of a file decides how long reading them takes."""
    low, high = vectorizer.ngram_range
    sound = vectorizer.input == "content" and vectorizer.token_pattern in PATTERNS and 1 <= low <= high <= 10
    plain = vectorizer.vocabulary is None and vectorizer.encoding == "utf-8"
    require(
        sound and plain and vectorizer.tokenizer is None and vectorizer.preprocessor is None,
        type(vectorizer).__name__,
        f"should read texts as they are, find its own vocabulary, join at most 10 words and use one of the token "
        f"patterns {', '.join(PATTERNS)}",
    )


SCALED = {**FEATURES, "n_samples_seen_": SEEN}
SPECTRUM = {"explained_variance_": Numbers(("q",)), "explained_variance_ratio_": Numbers(("q",), missing=True),
            "singular_values_": Numbers(("q",), 0)}  # fmt: skip
PLAIN = "sklearn.preprocessing:"
WORDS = {"words": Names("w")}

COLUMNS = [
    Schema(f"{PLAIN}StandardScaler", {**SCALED, "mean_": Numbers(optional=True), "var_": Numbers(low=0, optional=True),
                                      "scale_": POSITIVE}),
    Schema(f"{PLAIN}MinMaxScaler", {**SCALED, "scale_": Numbers(), "min_": Numbers(), "data_min_": Numbers(),
                                    "data_max_": Numbers(), "data_range_": Numbers()}),
    Schema(f"{PLAIN}MaxAbsScaler", {**SCALED, "max_abs_": Numbers(low=0), "scale_": POSITIVE}),
    Schema(f"{PLAIN}RobustScaler", {**FEATURES, "center_": Numbers(optional=True), "scale_": POSITIVE}),
    Schema("sklearn.impute:SimpleImputer",
           {**FEATURES, "statistics_": Numbers(missing=True), "fill": Words(("float32", "float64")),
            "missing": Numbers(("m",), 0, 2**31, types=WHOLE, optional=True)},
           rebuilt=("_fit_dtype", "_fill_dtype", "indicator_"), take=_imputed, build=_imputer, check=_no_words),
    Schema("sklearn.decomposition:PCA",
           {**FEATURES, "components_": Numbers(("q", "p")), "n_components_": Count(0, 2**31, "q"), "mean_": Numbers(),
            **SPECTRUM, "noise_variance_": Numbers((), types=("float32", "float64")), "n_samples_": Count(1),
            "_fit_svd_solver": Words(("full", "covariance_eigh", "arpack", "randomized"))}),
    Schema("sklearn.decomposition:TruncatedSVD", {**FEATURES, "components_": Numbers(("q", "p")), **SPECTRUM}),
    Schema(f"{PLAIN}OneHotEncoder",
           {**FEATURES, "categories_": Categories(), "rare": _Optional(Places()), "places": _Optional(Places()),
            "dropped": _Optional(_Dropped())},
           rebuilt=("_infrequent_enabled", "_infrequent_indices", "_default_to_infrequent_mappings", "drop_idx_",
                    "_drop_idx_after_grouping", "_n_features_outs"),
           take=_hot_entries, build=_hot, check=_plain_hot),
    Schema(f"{PLAIN}OrdinalEncoder", {**FEATURES, "categories_": Categories()},
           rebuilt=("_infrequent_enabled", "_missing_indices"),
           take=_as_objects, build=_ordinal, check=_plain_ordinal),
    Schema("sklearn.feature_extraction.text:TfidfVectorizer",
           {**WORDS, "rarity": Numbers(("w",), 0, ANY, optional=True)}, {},
           rebuilt=("_tfidf", "vocabulary_", "fixed_vocabulary_", "_stop_words_id"),
           take=_vocabulary, build=_weigher, check=_plain_words),
    Schema("sklearn.feature_extraction.text:CountVectorizer", WORDS, {},
           rebuilt=("vocabulary_", "fixed_vocabulary_", "_stop_words_id"),
           take=_vocabulary, build=_counter, check=_plain_words),
]  # fmt: skip
