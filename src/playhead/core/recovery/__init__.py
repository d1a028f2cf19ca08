"""Injected failures: where they are planned, what the model did after one, and the report."""
