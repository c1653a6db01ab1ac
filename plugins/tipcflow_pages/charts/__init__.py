"""Charts as SVG, rendered on the server: they need no script, print, and follow the light and dark mode.

Public: `axes`, `gantt`, `lines`, `losses`, `panel`, `scaling`.
"""
