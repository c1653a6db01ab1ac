"""From stored deliveries to attempts, and from runs to reports; the state is in the metrics database.

Every step may be repeated: a process that dies in between loses and doubles nothing.

Public: `__all__`, `deliver`, `handle`, `observe`, `waiting`.
"""

from tipcflow.github.flow.deliver import Delivered, deliver
from tipcflow.github.flow.handle import Clients, handle
from tipcflow.github.flow.observe import report
from tipcflow.github.flow.waiting import work_waits

__all__ = ["Clients", "Delivered", "deliver", "handle", "report", "work_waits"]
