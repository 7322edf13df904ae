"""Estimators of scikit-learn as numbers: a schema for each type, checked before anything is built."""
