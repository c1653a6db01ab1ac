"""Connections to nodes: one protocol and its adapters. No other package uses SSH."""

from tipcflow.transport.base import Completed, Transport

__all__ = ["Completed", "Transport"]
