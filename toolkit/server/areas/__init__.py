"""One module per `/v1` area, each with its `router`."""
