"""Every estimator of scikit-learn that a model may hold, by its name."""

from __future__ import annotations

from pue.persistence.schemas.columns import COLUMNS
from pue.persistence.schemas.models import MODELS
from pue.persistence.schemas.schema import Schema
from pue.persistence.schemas.trees import TREES

SCHEMAS: dict[str, Schema] = {schema.name: schema for schema in (*COLUMNS, *MODELS, *TREES)}
