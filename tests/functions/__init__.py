"""Functions of a notebook as nodes of a workflow."""
