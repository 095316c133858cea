"""The function that executors carry to workers, in a module that imports next to nothing.

Dask's scheduler imports it, too, and answers nobody meanwhile.
"""


def run_row(text: str) -> str:
    """Run the notebook of a row, `RowRequest` as JSON; return what came of it, `RowAnswer`."""
    from toolkit.batch.remote.row import answer_request  # papermill and its kernels

    return answer_request(text)
