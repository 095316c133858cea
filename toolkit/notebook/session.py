"""Additions to a session of IPython or a notebook's kernel, on the first use of this package."""


def attach_session() -> None:
    """Add completion and readable display to the session; do nothing outside of a session."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None or shell.Completer is None:
        return
    from toolkit.notebook.completion.matcher import attach_matcher
    from toolkit.notebook.record_formatters import attach_formatters

    attach_matcher(shell)
    attach_formatters(shell)
