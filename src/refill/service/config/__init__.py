"""A team's things as one file: what it would change, changing it, and writing it down."""
