"""Parsers of reports other than the training log: AutoLog, inference, engine, predictions, resources.

Public: nothing.
"""
