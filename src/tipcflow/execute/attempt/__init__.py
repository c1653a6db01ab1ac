"""One attempt of a step on all of its nodes, and its retries.

Public: `decisions`.
"""
