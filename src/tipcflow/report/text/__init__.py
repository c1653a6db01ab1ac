"""How facts are written, the same on the CLI, the pages, in Markdown and in task logs.

`styles`: the color of a status. `names`: short names of steps. `jobs`: how a
job ended, and its command to paste. `markdown_text`: escaped cells and tables. `plain`: untrusted text.
`scaling`: rows of a scaling table.

Public: `jobs`, `markdown_text`, `names`, `plain`, `scaling`, `styles`.
"""
