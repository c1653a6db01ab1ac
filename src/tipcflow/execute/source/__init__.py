"""The suite's files: a snapshot of a ref or folder, its cache, and the merge base of a change.

Public: `merge_base`, `params_at`, `snapshot`, `wheel`.
"""
