"""Sphinx's settings for the site. docs/make.sh stages the pages, so paths are those of $(BUILD)/docs/source."""

project = "tapegrad"
author = "the tapegrad authors"
copyright = author
extensions = ["myst_parser", "breathe", "sphinx.ext.mathjax"]
exclude_patterns = ["code", "generated", "Doxyfile"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

breathe_projects = {"tapegrad": "../doxygen/xml"}
breathe_default_project = "tapegrad"
breathe_default_members = ("members", "undoc-members")
breathe_show_include = False
# Some docstrings have formulas where others have code.
suppress_warnings = ["misc.highlighting_failure"]
primary_domain = "cpp"
highlight_language = "cpp"
cpp_maximum_signature_line_length = 90

# Formulas are drawn as SVG by the MathJax that lies beside the pages: no font and no request.
mathjax_path = "mathjax/MathJax.js?config=TeX-AMS_SVG"
mathjax2_config = {
    "messageStyle": "none",
    "showMathMenu": False,
    "SVG": {"linebreaks": {"automatic": True}, "scale": 90},
    "tex2jax": {"inlineMath": [["\\(", "\\)"]], "displayMath": [["\\[", "\\]"]], "processClass": "math", "ignoreClass": "document"},
}

html_theme = "furo"
html_title = "tapegrad"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}
