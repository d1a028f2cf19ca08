"""Runs things: recorder, seam, replay."""
