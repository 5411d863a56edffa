"""One module per system, each with one or more subclasses of SinkBed; found by discovery."""
