"""Installation for local clusters and tests: system packages, uv, node environments.

Public: `environment`, `packages`, `prepare`, `uv`.
"""
