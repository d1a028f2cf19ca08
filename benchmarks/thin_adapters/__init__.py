"""`benchmarks.adapters` for frameworks that the development environment does not hold, each in one of its own.

``python -m benchmarks.thin_adapters [NAME ...]`` installs them from the package index, newest versions.
"""
