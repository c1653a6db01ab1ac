"""Notifications of teams by Airflow's notifiers.

Public: `channels`, `sweep`.
"""
