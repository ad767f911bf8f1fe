"""Compiles capturing's Java classes inside the session's driver."""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses("flinkmagic.capturing.driver")
