"""One node's part of a step: job specification, exit record, hang evidence.

Public: `listening`.
"""
