"""Installation for local clusters and tests: system packages and node environments.

Public: `environment`, `packages`, `prepare`, `wheels`.
"""
