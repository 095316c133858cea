"""How Sphinx makes the documentation; `scripts/docs` runs it."""

project = "capability-toolkit"
author = "the capability-toolkit contributors"
copyright = "the capability-toolkit contributors"  # noqa: A001 - Sphinx's name

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "capability-toolkit"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sphinx = False
html_copy_source = False

# Notebooks are shown as they are committed: the tests run them.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # what they show needs no script of others
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Docstrings have Markdown's single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
napoleon_use_rtype = False
napoleon_use_ivar = True
