"""Losses and accuracies: finite, falling, at the target, reproducible.

Public: nothing.
"""
