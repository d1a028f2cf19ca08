"""The outer egress guard: what holds a whole process tree, and the only way out of it."""
