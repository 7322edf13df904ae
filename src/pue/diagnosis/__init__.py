"""Is the labeling biased, by what, and what to do about it."""
