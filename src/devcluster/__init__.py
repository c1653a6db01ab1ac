"""Local SSH nodes, their environment, a sample history, and the one-command demo.

Public: `signals`.
"""
