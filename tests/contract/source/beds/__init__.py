"""One module per system, each with one or more subclasses of SourceBed; found by discovery."""
