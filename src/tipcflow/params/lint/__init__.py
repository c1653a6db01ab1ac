"""What a suite's script would silently drop, misread or skip in a params file, by file and line.

A rule is a pure function over the text, the lines and the dialect; one module holds one group of rules.

Public: `guess`, `rules`, `subject`.
"""
