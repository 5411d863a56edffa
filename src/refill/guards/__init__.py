"""Guards over SQL that users write: what is not known to be harmless is refused."""
