"""One picture for each measurement."""
