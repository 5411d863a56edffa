"""Telling people: stored events, delivered at least once, to whoever wishes to know."""
