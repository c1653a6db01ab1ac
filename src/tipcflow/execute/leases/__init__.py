"""Slots of nodes: requested, renewed, released, and claimed on the node.

Public: `keeper`, `messages`.
"""
