"""Pages for a browser that operations write: one file each, without scripts and without anything to load."""
