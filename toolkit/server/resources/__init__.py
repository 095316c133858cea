"""One module for each `/v1` resource, each with its `router`."""
