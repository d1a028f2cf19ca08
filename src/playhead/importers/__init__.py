"""Recordings made elsewhere become sessions."""
