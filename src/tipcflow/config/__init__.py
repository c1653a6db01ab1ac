"""Typed configuration files and settings (docs/reference/configuration.md).

Public: `airflow_login`, `cluster`, `formats`, `goldens`, `loader`, `needs`, `own_dialects`, `policy`,
`references`, `repository`, `run_documents`, `settings`, `suite`, `waits`.
"""
