"""Secrets taken out of what is written: by name, by value in any spelling, by shape."""
