"""Also in pyproject.toml; a test compares."""

VERSION = "0.1.0"
