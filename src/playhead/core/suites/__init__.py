"""Suites, cases and labels; trials of them, and their scores."""
