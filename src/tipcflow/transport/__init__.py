"""Reaching nodes: one protocol, and its adapters. Nothing else knows SSH."""

from tipcflow.transport.base import Completed, Transport

__all__ = ["Completed", "Transport"]
