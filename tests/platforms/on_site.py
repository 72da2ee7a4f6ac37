"""What a person sees of the site in Chromium, its pages opened as files: facts as JSON.

python on_site.py FOLDER      (the site; FOLDER/answer.json: `pages`, each with what is wrong, and `searches`)
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

# blocks of code of which a part cannot be seen: wider than what shows it, and no way to scroll there
CUT = """() => [...document.querySelectorAll('pre > code')].filter(code => {
    if (code.scrollWidth <= code.clientWidth) return false;
    code.scrollLeft = code.scrollWidth;
    return code.scrollLeft === 0 || !code.closest('.language-text');
}).map(code => code.textContent.slice(0, 60))"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
RESULTS = "() => [...document.querySelectorAll('.md-search-result__item a')].map(link => link.href)"


def opened(browser: Browser, file: Path, width: int, problems: list[str]) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else problems.append(request.url))
    page.goto(file.as_uri())
    return page


def look(browser: Browser, file: Path, width: int) -> dict[str, Any]:
    problems: list[str] = []
    page = opened(browser, file, width, problems)
    facts = {"problems": problems, "cut": page.evaluate(CUT), "wider": page.evaluate(WIDER)}
    page.close()
    return facts


def search(browser: Browser, file: Path, words: str) -> dict[str, Any]:
    """Type words into the search of a page, and open the first result."""
    problems: list[str] = []
    page = opened(browser, file, 1200, problems)
    page.keyboard.press("/")
    page.keyboard.type(words)
    with suppress(TimeoutError):
        page.wait_for_selector(".md-search-result__item")
    results = page.evaluate(RESULTS)
    if results:
        page.click(".md-search-result__item a")
        page.wait_for_load_state()
    title = page.title()
    page.close()
    return {"problems": problems, "results": results, "title": title}


def main(site: Path) -> None:
    with sync_playwright() as programs:
        browser = programs.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = {
            f"{file.relative_to(site)} {width}": look(browser, file, width)
            for file in sorted(site.rglob("*.html"))
            if file.name != "404.html"  # its links begin with /, for servers
            for width in (1200, 400)
        }
        searches = {
            name: search(browser, site / name, "drop_candidates") for name in ("index.html", "reference/as_of.html")
        }
        browser.close()
    (site / "answer.json").write_text(json.dumps({"pages": pages, "searches": searches}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
