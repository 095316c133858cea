"""A session of IPython or of a notebook's kernel: what it gains as soon as this package is used."""


def attach_session() -> None:
    """Have the session complete what is ours and show it readably; nothing outside of one."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None or shell.Completer is None:
        return
    from toolkit.notebook.completion.matcher import attach_matcher
    from toolkit.notebook.record_formatters import attach_formatters

    attach_matcher(shell)
    attach_formatters(shell)
