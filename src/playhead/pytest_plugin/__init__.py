"""Fixtures, sessions and suites in pytest; loaded by pytest itself through its entry point."""
