"""Checks of compressed models: whether they are compressed, and their speed.

Public: nothing.
"""
