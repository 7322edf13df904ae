"""The scikit-learn face: classifiers, rows scored by models that have not seen them, search and sweep."""
