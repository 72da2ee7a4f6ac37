"""Draw the flowcharts of docs/flows as SVG files beside their pages, for the site, which loads nothing from elsewhere.

The source of a drawing is in its page, so that code hosts draw it, too. The SVG contains it, so that a test finds a
drawing that is out of date. Needs npm and Chromium.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOWS = ROOT / "docs" / "flows"
MERMAID = "12.3.0"
SOURCE = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Labels as text of SVG: a picture in an <img> may not contain HTML in every viewer
SETTINGS = {
    "startOnLoad": False,
    "deterministicIds": True,
    "htmlLabels": False,
    "theme": "neutral",
    "fontFamily": "Arial, Helvetica, sans-serif",
    "flowchart": {"htmlLabels": False, "wrappingWidth": 460, "nodeSpacing": 30, "rankSpacing": 30, "padding": 8},
}
PAGE = """<!DOCTYPE html><meta charset="utf-8"><script src="%s"></script><body><script>
mermaid.initialize(%s);
(async () => {
  const drawn = {};
  for (const [name, text] of Object.entries(%s)) drawn[name] = (await mermaid.render("flow-" + name, text)).svg;
  document.body.textContent = "BEGIN" + btoa(unescape(encodeURIComponent(JSON.stringify(drawn)))) + "END";
})().catch(error => { document.body.textContent = "ERROR " + error + " END"; });
</script>"""


def library() -> Path:
    """mermaid.min.js of the pinned version, installed into .environments."""
    home = ROOT / ".environments" / "mermaid"
    package = home / "node_modules" / "mermaid"
    found = package / "package.json"
    if not found.is_file() or json.loads(found.read_text())["version"] != MERMAID:
        home.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        subprocess.run(["npm", "install", *options, "--prefix", str(home), f"mermaid@{MERMAID}"], check=True)
    return package / "dist" / "mermaid.min.js"


def drawn(sources: dict[str, str]) -> dict[str, str]:
    """Name to SVG."""
    texts = json.dumps(sources).replace("</", "<\\/")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(PAGE % (library().as_uri(), json.dumps(SETTINGS), texts))
        browser = os.environ.get("CHROMIUM", "chromium")
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command = [browser, *options, "--virtual-time-budget=60000", "--dump-dom", page.as_uri()]
        shown = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    found = re.search("BEGIN(.*)END", shown)
    if not found:
        raise SystemExit(f"mermaid has drawn nothing: {re.findall('(?s)ERROR.*END', shown)}")
    pictures: dict[str, str] = json.loads(base64.b64decode(found[1]))
    return pictures


def main() -> None:
    sources = {
        page.stem: match[1] for page in sorted(FLOWS.glob("*.md")) for match in SOURCE.finditer(page.read_text())
    }
    for name, picture in drawn(sources).items():
        # it is an image of its own: as wide as it is drawn, and with a background for the dark theme
        width = re.search(r"max-width: ([\d.]+)px", picture)
        picture = re.sub(r'width="100%"', f'width="{width[1]}"' if width else "", picture, count=1)
        picture = re.sub(r'style="[^"]*"', 'style="background-color: white"', picture, count=1)
        begin, rest = re.match(r"(<svg[^>]*>)(.*)", picture, re.DOTALL).groups()  # type: ignore[union-attr]
        source = f"<metadata>{escape(sources[name], quote=False)}</metadata>"
        (FLOWS / f"{name}.svg").write_text(f"{begin}{source}{rest}\n")
        print(f"docs/flows/{name}.svg, {len(picture):,} bytes")


if __name__ == "__main__":
    main()
