"""One node: sessions, file transfer, environment, health, containers, preflight.

Public: `health`, `preflight`, `session`.
"""
