"""Installs what a local cluster and the tests need: system packages, uv, node environments."""
