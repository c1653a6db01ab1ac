"""Nodes that get no runs because they are slower than before.

Public: `drains`.
"""
