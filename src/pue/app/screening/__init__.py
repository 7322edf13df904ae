"""Columns that would do harm if they were learnt from: leaks of the label, identifiers, the order of the table."""
