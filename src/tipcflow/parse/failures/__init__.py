"""Classification of failures from logs.

Public: `collectives`, `excerpt`, `failure`, `gpu_memory`, `hang_evidence`, `preparation`.
"""
