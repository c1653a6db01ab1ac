"""Predictions: parity between legs, golden results, scores."""
