"""Puts the decoder page into one HTML file, which also works when it is opened from a disk: browsers load no modules from there.

    build.py OUTPUT

Each module becomes a function that returns what the module exports, in the order in which modules need each other. The content
security policy of the page allows the one script and the one style by their hashes, and nothing else.
"""

import base64
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
IMPORT = re.compile(r'^import \{ ([\w$, ]+) \} from "\./([\w.]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) ([\w$]+))", re.MULTILINE)


def bundle(name, done):
    """The script of a module and of all modules that it imports and that are not done yet."""
    source = (HERE / name).read_text(encoding="utf-8")
    parts = []
    for _, imported in IMPORT.findall(source):
        if imported not in done:
            parts.append(bundle(imported, done))
    done.append(name)
    source = IMPORT.sub(lambda found: f"const {{ {found[1]} }} = {variable(found[2])};", source)
    exported = EXPORT.findall(source)
    source = EXPORT.sub("", source)
    left = re.search(r"^\s*(import|export)\b.*", source, re.MULTILINE)
    if left:
        raise SystemExit(f"decoder/{name}: this form of import or export is not supported: {left[0]}")
    parts.append(f"const {variable(name)} = (() => {{\n{source}return {{ {', '.join(exported)} }};\n}})();\n")
    return "".join(parts)


def variable(name):
    return name.removesuffix(".mjs") + "Module"


def replace_once(page, old, new):
    if page.count(old) != 1:
        raise SystemExit(f"decoder/index.html has {page.count(old)} times, not once: {old}")
    return page.replace(old, new)


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def build():
    page = (HERE / "index.html").read_text(encoding="utf-8")
    style = "\n" + (HERE / "style.css").read_text(encoding="utf-8")
    script = "\n" + bundle("page.mjs", [])
    for text in (style, script):
        if re.search("</(script|style)|<!--", text, re.IGNORECASE):
            raise SystemExit("a script or a style contains its own end")
    page = replace_once(page, "script-src 'self'", f"script-src {hash_of(script)}")
    page = replace_once(page, "style-src 'self'", f"style-src {hash_of(style)}")
    page = replace_once(page, '<link rel="stylesheet" href="style.css">', f"<style>{style}</style>")
    page = replace_once(page, '<script type="module" src="page.mjs"></script>', f'<script type="module">{script}</script>')
    comment = re.compile(r"^<!--.*?-->\n", re.MULTILINE)
    page = comment.sub("", page)
    outside = re.search(r"""(?:src|href)=(?!"data:,")|url\(|@import|https?://""", page.replace(script, "").replace(style, ""))
    if outside:
        raise SystemExit(f"decoder/index.html refers to another file: {outside[0]}")
    return page


if __name__ == "__main__":
    output = pathlib.Path(sys.argv[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(build(), encoding="utf-8")
