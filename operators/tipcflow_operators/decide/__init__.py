"""DAGs that store decisions of users, which the pages start: api-servers have a read-only login of the database.

Public: `dag`.
"""
