"""Experiments: arms over cohorts, what their runs gave, and what that shows."""
