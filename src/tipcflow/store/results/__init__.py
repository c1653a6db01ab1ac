"""What tasks of a run store for others: documents, facts of nodes, results of checks.

Public: `documents`.
"""
