"""Stored facts -> verdict: check context, checks, confirm runs, re-evaluation.

Public: `check_context`, `conclusion`, `confirm`, `judge`, `rejudge`, `run_data`, `signature`.
"""
