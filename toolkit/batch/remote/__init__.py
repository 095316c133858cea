"""Batches whose notebooks run on workers elsewhere: on a Dask cluster, or by any executor."""
