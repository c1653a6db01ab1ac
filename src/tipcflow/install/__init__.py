"""Installers as child processes, and uv, which installs the environments of nodes.

Public: `installer`, `uv`.
"""
