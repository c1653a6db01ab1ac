"""A request -> a plan: files read, suite snapshot taken, nodes placed.

Public: `moved`, `planning`, `resolve`, `suite_file`.
"""
