"""Redis: streams and strings."""
