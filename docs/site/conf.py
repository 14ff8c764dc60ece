"""The configuration of Sphinx for the site that `make docs` builds.

The source directory is the repository, so that a link between two pages works on GitHub and in the site. The pages are read as GitHub reads
them, without the extensions of MyST. The navigation consists of the groups of docs/README.md, in its order.
"""

import html
import re
import tomllib
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import inherit
from pygments.lexers import TextLexer, get_lexer_by_name, get_lexer_for_filename
from pygments.lexers.configs import IniLexer
from pygments.lexers.sql import PostgresLexer
from pygments.token import Keyword
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.domains.std import StandardDomain

repository = Path(__file__).resolve().parents[2]

project = "snowflake_pg"
release = version = tomllib.loads((repository / "Cargo.toml").read_text())["workspace"]["package"]["version"]
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "bench/results/*/results.md"]
# Sphinx would look for pages in all folders.
exclude_patterns = sorted(path.name for path in repository.iterdir() if path.is_dir() and path.name not in ("docs", "bench"))
nitpicky = True
smartquotes = False
# The page that lists all pages, which has the groups of the navigation.
index = "docs/README"
# The page that decodes IDs, which scripts/decoder builds.
decoder = "decoder/index"
has_decoder = (repository / f"{decoder}.html").exists()
# Source files that pages link to.
sources = set()

myst_enable_extensions = ["alert", "gfm_autolink", "tasklist"]
myst_disable_syntax = ["front_matter", "myst_block_break", "myst_line_comment", "myst_role", "myst_target"]
myst_heading_anchors = 6

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
# The excerpts are requests that a browser refuses in a site that is opened as a file.
html_show_search_summary = False
html_theme_options = {"footer_icons": []}


class Settings(IniLexer):
    """A part of postgresql.conf."""


class Sql(PostgresLexer):
    """SQL as psql reads it."""

    tokens = {"root": [(r"\\[a-z?!]+", Keyword.Pseudo), inherit]}


def groups(text):
    """The groups of the index: the title of each, and its links to pages and to the decoder, as (text, target)."""
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        links = re.findall(r"\[([^\]]+)\]\(([^)#\s]+)\)", body)
        links = {target: text for text, target in reversed(links) if target.endswith(".md") or "decoder" in target}
        if links:
            found.append((title.strip(), [(text, target) for target, text in reversed(links.items())]))
    return found


def toctree(caption, entries):
    """An invisible table of contents, which Sphinx shows in the navigation."""
    tree = addnodes.toctree(caption=caption, rawcaption=caption, entries=entries, parent=root_doc, hidden=True, titlesonly=True)
    tree.attributes.update(includefiles=[name for _, name in entries if name not in ("self", decoder)], maxdepth=1)
    tree.attributes.update(glob=False, includehidden=False, numbered=0)
    return nodes.compound("", tree, classes=["toctree-wrapper"])


def add_navigation(env, doctree):
    """Adds the navigation to the front page."""
    path = repository / f"{index}.md"
    trees = [toctree("", [("Overview", "self"), ("All pages", index)])]
    rest = set(env.found_docs) - {root_doc, index}
    for caption, links in groups(path.read_text()):
        entries = []
        for text, target in links:
            name = (path.parent / target).resolve().relative_to(repository)
            name = decoder if name.parts[0] == "decoder" else str(name.with_suffix(""))
            title = None if "/" in text or text.endswith(".md") else text.strip("`")
            if name != decoder and name in rest:
                rest.remove(name)
                entries.append((title, name))
            elif name == decoder and has_decoder:
                entries.append((title or "Decoder", name))
        trees.append(toctree(caption, entries))
    # The pages of docs/ must be in the index. Sphinx reports those that are not.
    others = sorted((name for name in rest if not name.startswith("docs/")), key=lambda name: (name.count("/"), name))
    if others:
        trees.append(toctree("Project", [(None, name) for name in others]))
    next(doctree.findall(nodes.section)).extend(trees)


def uri(app, target):
    """Where the page that is being read finds another page of the site."""
    return app.builder.get_relative_uri(app.env.docname, target)


def link_sources(app, doctree):
    """Makes links to source files lead to pages that show them, and links to folders text."""
    for node in list(doctree.findall(lambda node: isinstance(node, (addnodes.download_reference, addnodes.pending_xref)))):
        target = node["reftarget"].split("#")[0]
        if node["refdomain"] == "doc" or not target:
            continue
        path = Path(app.env.relfn2path(target, app.env.docname)[1]).resolve()
        if not path.exists() or repository not in path.parents:
            continue
        path = path.relative_to(repository)
        if has_decoder and path in (Path("decoder"), Path(f"{decoder}.html")):
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri(app, decoder), internal=True))
        elif (repository / path).is_dir():
            node.replace_self(node.children)
        else:
            sources.add(path)
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri(app, f"source/{path}"), internal=True))


def show_sources(app):
    """The pages of the source files that other pages link to."""
    for path in sorted(sources):
        text = (repository / path).read_text()
        try:
            lexer = get_lexer_for_filename(path.name)
        except ClassNotFound:
            lexer = TextLexer()
        code = highlight(text, lexer, HtmlFormatter(wrapcode=True))
        title = html.escape(str(path))
        yield f"source/{path}", {"title": title, "body": f"<section><h1>{title}</h1>{code}</section>"}, "page.html"


def add_github_anchors(doctree):
    """Adds the anchors that GitHub gives headings, so that a link to a section works in both places."""
    for section in doctree.findall(nodes.section):
        slug = section.get("slug")
        if slug and slug not in section["ids"]:
            section["ids"].append(slug)


def is_known(language):
    """True if there is a lexer for a language."""
    try:
        get_lexer_by_name(language)
    except ClassNotFound:
        return language == "conf"
    return True


def name_languages(doctree):
    """Takes the words after a fence for the language that they begin with: `sql-partman` is SQL for the reader. Others are text."""
    for block in doctree.findall(nodes.literal_block):
        language = re.split(r"\W", block.get("language", ""))[0]
        block["language"] = language if is_known(language) else "text"


def read(app, doctree):
    """Completes a page after it was read."""
    if app.env.docname == root_doc:
        add_navigation(app.env, doctree)
    link_sources(app, doctree)
    add_github_anchors(doctree)
    name_languages(doctree)


def setup(app):
    """Called by Sphinx."""
    app.add_lexer("conf", Settings)
    app.add_lexer("sql", Sql)
    if has_decoder:
        StandardDomain._virtual_doc_names[decoder] = (decoder, "Decoder")
    # Before Sphinx collects the tables of contents and the files to download.
    app.connect("doctree-read", read, priority=1)
    app.connect("html-collect-pages", show_sources)
