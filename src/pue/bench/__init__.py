"""The paper's bench: data sets, labeling mechanisms, specs and suites of runs, their records and the report.

Import from its modules; nothing is imported here, so that a list of data sets needs no training stack.
"""
