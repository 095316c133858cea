"""The function that executors carry to workers, in a module that imports next to nothing.

Dask's scheduler imports it, too, and answers no requests meanwhile.
"""


def run_row(text: str) -> str:
    """Run the notebook of a row, `RowRequest` as JSON, and return its `RowAnswer` as JSON."""
    from toolkit.batch.remote.row import answer_request  # papermill and its kernels

    return answer_request(text)
