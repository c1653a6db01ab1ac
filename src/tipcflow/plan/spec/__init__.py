"""Plans in spec semantics: steps, legs, containers, feasibility.

Public: `container`, `feasible`.
"""
