"""Imported records to sessions, once for every source."""
