"""Classification of failures from logs.

Public: `excerpt`, `failure`, `hang_evidence`, `preparation`.
"""
