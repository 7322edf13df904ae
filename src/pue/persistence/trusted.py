"""Which types a .skops file may hold, and as what: skops' own list of what it trusts is all of scikit-learn.

A node of such a file says how it is loaded (`__loader__`) and of which type it is. skops asks only whether it trusts
the type; here the pair must be listed, so that a type that is stored as an object cannot be called as a function.
"""

from __future__ import annotations

PROTOCOL = 2
"""Of skops' format. Nodes of older protocols say elsewhere what they load, where `audit` would not look."""

_ESTIMATORS = {
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.decomposition._pca.PCA",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
    "sklearn.feature_extraction.text.HashingVectorizer",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.isotonic.IsotonicRegression",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.preprocessing._label.LabelEncoder",
    "sklearn.preprocessing._polynomial.SplineTransformer",
}
_PARTS = {
    "pandas.DatetimeTZDtype",
    "scipy.interpolate._bsplines.BSpline",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}
_SKRUB = {
    "skrub._apply_to_each_col.ApplyToEachCol",
    "skrub._check_input.CheckInputDataFrame",
    "skrub._clean_categories.CleanCategories",
    "skrub._clean_null_strings.CleanNullStrings",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._datetime_encoder._SplineEncoder",
    "skrub._drop_uninformative.DropUninformative",
    "skrub._duration_to_float.DurationToFloat",
    "skrub._squashing_scaler.SquashingScaler",
    "skrub._squashing_scaler._MinMaxScaler",
    "skrub._string_encoder.StringEncoder",
    "skrub._table_vectorizer.PassThrough",
    "skrub._table_vectorizer.ShortReprDict",
    "skrub._table_vectorizer.TableVectorizer",
    "skrub._to_categorical.ToCategorical",
    "skrub._to_datetime.ToDatetime",
    "skrub._to_float.ToFloat",
    "skrub._to_str.ToStr",
    "skrub.selectors._base.All",
    "skrub.selectors._base.And",
    "skrub.selectors._base.Cols",
    "skrub.selectors._base.Filter",
    "skrub.selectors._base.Sub",
}
_LIGHTGBM = {
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
}
_FUNCTIONS = {
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "sklearn.utils.validation.check_array",
    "skrub._dataframe._common.is_any_date",
    "skrub._dataframe._common.is_categorical",
    "skrub._dataframe._common.is_numeric",
    "skrub._table_vectorizer._created_by_predicate",
    "skrub.selectors._selectors._cardinality_below",
}
_NUMBERS = {f"numpy.{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)} | {"numpy.bool"}

NODES: dict[str, set[str]] = {
    "ConstructorFromReduceNode": {"datetime.timedelta", "datetime.timezone", "zoneinfo.ZoneInfo"},
    "DTypeNode": {"numpy.dtype"},
    "DefaultDictNode": {"collections.defaultdict"},
    "DictNode": {"builtins.dict", "collections.OrderedDict"},
    "FunctionNode": _FUNCTIONS,
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "LossNode": {"sklearn._loss._loss.CyHalfBinomialLoss"},
    "NdArrayNode": {"numpy.ndarray", *_NUMBERS},
    "ObjectNode": _ESTIMATORS | _PARTS | _SKRUB | _LIGHTGBM,
    "PartialNode": {"functools.partial"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {f"builtins.{name}" for name in ("bool", "float", "int", "str")}
    | {"collections.OrderedDict", *_NUMBERS},
}
"""Loader → types. A new estimator's names are in the error that refuses it."""
