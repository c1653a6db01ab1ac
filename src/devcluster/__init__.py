"""Local SSH nodes, their environment, a sample history, the one-command demo, and checks that need GPUs.

Public: `signals`.
"""
