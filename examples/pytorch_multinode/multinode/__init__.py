"""What the three tests share.

Public: `arguments`, `group`, `images`, `network`, `training`.
"""
