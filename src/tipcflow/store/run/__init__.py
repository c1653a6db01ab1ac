"""What is stored of a run itself: identity, plan, steps, attempts and their members.

Public: `members`.
"""
