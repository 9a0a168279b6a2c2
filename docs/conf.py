"""The documentation site (`make site`). Its notebooks are executed, and what they assert must hold."""

import os
import shutil
import sys
from pathlib import Path

from pygments.lexers.rust import RustLexer
from sphinx.application import Sphinx

SITE = Path(__file__).parent / "_site"
sys.path.insert(0, str(SITE))
os.environ.pop("MPLBACKEND", None)
os.environ["NVLAB_NO_PROGRESS"] = "1"

project = "nvlab"
html_title = "nvlab"
extensions = ["myst_nb", "sphinx.ext.autodoc", "commands"]
exclude_patterns = ["_site"]

myst_heading_anchors = 3
nb_execution_mode = "force"
# Shown with its traceback; the warning fails the build.
nb_execution_show_tb = True
nb_execution_timeout = 300

html_theme = "furo"
# What commands print is up to 100 columns wide.
html_theme_options = {"light_css_variables": {"code-font-size": "75%"}}
html_favicon = "_site/static/favicon.svg"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

# In docstrings `name` is code.
default_role = "code"
autodoc_member_order = "bysource"
# Most objects are returned by functions, and made by nobody else.
autodoc_class_signature = "separated"
autodoc_default_options = {"exclude-members": "__init__, __new__"}


def without_placeholder(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """A field of a named tuple is not described by its number."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    # Notebooks draw as our profile says, not this user's. IPython writes beside it, so it is a copy.
    ipython = Path(app.doctreedir) / "ipython"
    shutil.copytree(SITE / "ipython", ipython, dirs_exist_ok=True)
    os.environ["IPYTHONDIR"] = str(ipython)
    app.connect("autodoc-process-docstring", without_placeholder)
    # A word that tests of Rust examples understand.
    app.add_lexer("rust,no_run", RustLexer)
