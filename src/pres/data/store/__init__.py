"""Streams larger than memory: kept in a folder, and used where they lie."""
