"""How the site is built: `make docs` runs Sphinx with this file, and warnings are errors."""

import re
import runpy
import warnings
from pathlib import Path

from sphinx.errors import ExtensionError

import sparsegsvp

project = "sparsegsvp"
author = "The sparsegsvp developers"
copyright = "2026, the sparsegsvp developers"
version = release = sparsegsvp.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas without a request to the network
]
exclude_patterns = ["_build", "_templates", "data", "gallery/**/*.ipynb", "gallery/*.md5"]
templates_path = ["_templates"]

# Pages are Markdown. Headings get the anchors that they have on GitHub, so that a link to a
# section works in both places.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The reference. A word in single backticks is a name if there is such a name, and else code.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib\.",
    "download_all_examples": False,
    "min_reported_time": 60,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its page loads scripts from the network
    "thumbnail_size": (780, 450),
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "sparsegsvp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
# a list of contents at the left only where a page has pages under it: reference, gallery, develop
html_sidebars = {
    page.stem: []
    for page in Path(__file__).parent.glob("*.md")
    if page.stem not in ("api", "develop", "releasing", "changelog")
}
html_theme_options = {
    "logo": {"text": "sparsegsvp"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 5,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}

warnings.filterwarnings("ignore", category=DeprecationWarning)


def _escape_names(app, what, name, obj, options, lines):
    """Keep reStructuredText from reading ``(n_features_in_,)`` in a type as a link."""
    lines[:] = [re.sub(r"n_features_in_(?=[,)])", r"n_features_in\\_", line) for line in lines]


def _skip_routing(app, what, name, obj, skip, options):
    """Leave out scikit-learn's own ``set_fit_request`` and its kin."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def _refuse_requests(app, exception):
    """Fail if a page would load something from the network when it is opened from disk."""
    tag = re.compile(r'<(?:script|img|iframe|source|link)\b[^>]*(?:src|href)="(?:https?:)?//[^>]*>')
    for page in Path(app.outdir).rglob("*.html"):
        if exception is None and (found := tag.search(page.read_text(encoding="utf-8"))):
            raise ExtensionError(f"{page.name} loads from the network: {found[0]}")


def _draw_lesson(app):
    """Draw the pictures of lesson.md."""
    runpy.run_path(str(Path(app.srcdir) / "lesson.py"), run_name="__main__")


def setup(app):
    app.connect("builder-inited", _draw_lesson)
    app.connect("autodoc-process-docstring", _escape_names)
    app.connect("autodoc-skip-member", _skip_routing)
    app.connect("build-finished", _refuse_requests)
