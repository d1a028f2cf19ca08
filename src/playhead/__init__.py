"""Recordings of AI-agent runs that can be run again."""
