"""Checks that a run executed its plan: steps, world size, training, engine, environment, confirm run.

Public: nothing.
"""
