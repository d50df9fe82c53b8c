"""Data sets: their sources and checksums, the cache that keeps them, and their loaders."""
