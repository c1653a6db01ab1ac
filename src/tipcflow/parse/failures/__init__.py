"""Classification of failures from logs.

Public: `collectives`, `excerpt`, `failure`, `hang_evidence`, `preparation`.
"""
