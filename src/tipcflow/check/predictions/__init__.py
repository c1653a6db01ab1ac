"""Predictions: parity between legs, golden results, scores.

Public: nothing.
"""
