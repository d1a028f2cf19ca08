"""Test doubles and conformance suites, for us and for third parties."""
