"""The page "Certification": latest runs per chain, one page per run, from the metrics database, read-only.

Public: nothing.
"""
