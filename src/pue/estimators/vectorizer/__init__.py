"""Columns of any kind become numbers, each column by itself."""
