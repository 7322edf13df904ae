"""Audits as files: a sheet of rows for a person to answer, the plan beside it, a page to answer on."""
