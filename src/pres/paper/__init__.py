"""Everything that reproduces and measures the paper: its theory, its tables and figures, the report."""
