"""Measurements, as ratios in one run. They are never tests: nothing fails on a time."""
