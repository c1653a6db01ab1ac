"""Slots of nodes: requested, renewed, released, claimed on the node."""
