"""One node: sessions, files to and from it, environment, health, containers, preflight."""
