"""Models without pickle: a folder that can be read by anybody and that runs nothing when it is loaded.

::

    model/
    ├── manifest.json        schema, versions, size and SHA-256 of every other file
    ├── model.json           a tree of values; what is no JSON of its own is {"type": name, "value": …}
    └── tensors.safetensors  every tensor and array the tree refers to

Which types there are is decided by the library, never by a file: whoever defines a type says beside it that models may
hold it.

- a frozen dataclass: `@kept`, or `@kept_with_network` where one of its fields is a network; a field with the metadata
  `PASSING` is not stored;
- an estimator in scikit-learn's style: `@kept_estimator`, with the types of its fitted attributes;
- a function: `@kept_function`, or `keep_functions` for all functions of a registry; it is stored by name;
- an estimator of scikit-learn: a schema in `schemas`, which takes it apart into plain values and arrays, says of which
  type, shape and range each array is, and has our own code put it together again.

`model.save` and `model.load` do the rest.
"""

from pue.persistence.class_codecs import PASSING
from pue.persistence.networks import NetworkParts
from pue.persistence.registry import keep_functions, kept, kept_estimator, kept_function, kept_with_network

__all__ = ["PASSING", "NetworkParts", "keep_functions", "kept", "kept_estimator", "kept_function", "kept_with_network"]
