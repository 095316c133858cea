"""The cost of importing the notebook parts."""

import subprocess
import sys

LAZY = (
    "import toolkit, toolkit.notebook, sys; assert not {'ipywidgets', 'httpx'} & set(sys.modules)"
)


def test_imports_no_widget_library() -> None:
    """Given an import of the package, then no widget library and no HTTP library is loaded."""
    process = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
