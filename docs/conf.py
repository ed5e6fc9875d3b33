"""Configuration of the site; `make docs` builds it, without a network and without a warning."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "topksvm"
author = "The topksvm developers"
project_copyright = author
release = version = version_of("topksvm")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "local_mathjax",
    "markdown_changelog",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
default_role = "literal"  # `C` is a name in the code.
root_doc = "index"

# Every reference must be found (`-n`), but for those to other projects: looking up their
# inventories would need the network at every build.
nitpick_ignore_regex = [
    (r"py:.*", r"(dask|distributed|joblib|matplotlib|numpy|pandas|pyarrow|scipy|sklearn)\..*"),
]

# Reference pages: signatures without types, which stand in the docstrings in words.
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autosummary_generate = True
toc_object_entries_show_parents = "hide"  # The list of methods is narrow.
numpydoc_show_class_members = False
numpydoc_use_plots = False
numpydoc_validation_checks = {
    "all",
    "ES01",  # One line may say it all.
    "EX01",  # Methods show theirs in the class's; tests/docs asks every public name for examples.
    "GL01",  # The summary starts on the line of the quotes.
    "GL02",
    "GL03",
    "RT02",  # What is returned may have a name.
    "SA01",
    "SA04",
}
numpydoc_validation_exclude = {
    r"\.score$",  # scikit-learn's.
    r"^topksvm\.losses\.\w+\.",  # The contract describes them once for all losses.
    r"^topksvm\.solvers\.[A-Z]\w+$",  # Results: their parameters are their attributes.
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"[\\/]plot_",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("topksvm",),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "topksvm"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
# Pages without others below them have no use for a list of those.
html_sidebars = {
    "index": [],
    "getting_started": [],
    "maths": [],
    "migration": [],
    "benchmarks": [],
    "contributing": [],
    "changelog": [],
}
html_theme_options = {
    "logo": {
        "text": "topksvm",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False  # Pages made by scripts have theirs only in a browser.
