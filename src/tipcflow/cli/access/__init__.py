"""`tipcflow access`: users of Airflow and their roles.

Public: nothing.
"""
