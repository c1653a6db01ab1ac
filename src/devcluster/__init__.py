"""Local SSH nodes, their environment, and the one-command demo.

Public: `signals`.
"""
