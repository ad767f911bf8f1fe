"""Timings, measured as paired and interleaved runs; never asserted in tests."""
