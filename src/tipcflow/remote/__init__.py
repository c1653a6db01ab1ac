"""Remote commands as text, paths on nodes, and the node runner (docs/reference/job-folder.md).

Public: `bundle`, `claims`, `commands`, `containers`, `exec_command`, `fetching`, `host_slots`, `housekeeping`,
`onboarding`, `paths`, `ports`, `stillness`.
"""
