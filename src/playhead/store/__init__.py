"""Ports and backends of the store."""
