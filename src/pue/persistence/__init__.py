"""Models without pickle: a folder that can be read by anybody and that runs nothing when it is loaded.

::

    model/
    ├── manifest.json        schema, versions, size and SHA-256 of every other file
    ├── model.json           a tree of values; what is no JSON of its own is {"type": name, "value": …}
    ├── tensors.safetensors  every tensor and array the tree refers to
    └── estimator-0.skops …  every scikit-learn estimator, one file each

Which types there are is decided by `registry.TYPES` alone, never by a file. One more type is one line there:

- a frozen dataclass of `pue`: `"PUModel": Record("models:PUModel")`. Fields are stored by name and checked against
  their annotations; a field added later needs a default, so that older files still load;
- an estimator of `pue` in scikit-learn's style: `"Bag": Estimator("bags:Bag", fitted={"members_": list[Any]})`, stored
  as its parameters and the fitted attributes named there, with their types;
- a function: a line in `functions.FUNCTIONS`; it is stored by name;
- an estimator of scikit-learn or a library like it: its types in `trusted.NODES`, and in `soundness.CHECKS` what its
  compiled code would read without looking.

Paths are relative to `pue` and are imported only when a value of that type is met.
"""

from __future__ import annotations

from pue.persistence.model import load, save

__all__ = ["load", "save"]
