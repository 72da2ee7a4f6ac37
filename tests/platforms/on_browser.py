"""What a person sees and does on a page, in Chromium: facts as JSON.

python on_browser.py FOLDER      (every .html in it; answer.json beside them)
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

# what is drawn, and whether the page itself is wider than the window
FACTS = """() => ({
    background: getComputedStyle(document.body).backgroundColor,
    color: getComputedStyle(document.body).color,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    links: document.querySelectorAll('svg a').length,
    numbers: [...document.querySelectorAll('svg text:not(.moment)')].map(text => text.textContent),
    clipped: [...document.querySelectorAll('svg text')].filter(text => {
        const box = text.getBBox(), svg = text.ownerSVGElement;
        return box.x < 0 || box.y < 0 || box.y + box.height > svg.height.baseVal.value;
    }).length,
    covered: [...document.querySelectorAll('svg .moment')].filter((text, n, all) =>
        n > 0 && text.getBBox().x < all[n - 1].getBBox().x + all[n - 1].getBBox().width).length,
})"""


def look(page: Page, file: Path) -> dict[str, Any]:
    problems: list[str] = []

    def note_request(request: Any) -> None:
        if not request.url.startswith("file:"):
            problems.append(request.url)

    # a page that listens dismisses dialogs itself
    page.on("console", lambda message: problems.append(message.text))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", note_request)
    page.goto(file.as_uri())
    facts: dict[str, Any] = page.evaluate(FACTS)
    if facts["links"]:
        facts |= with_keys(page)
    return facts | {"problems": problems}


def with_keys(page: Page) -> dict[str, Any]:
    """Tab to the picture, scroll it, Tab to its second column, Enter."""
    page.keyboard.press("Tab")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    scrolled = page.evaluate("document.activeElement.scrollLeft")
    has_scroll = page.evaluate("document.activeElement.scrollWidth > document.activeElement.clientWidth")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    return {
        "scrolled": scrolled,
        "has_scroll": has_scroll,
        "label": label,
        "hash": page.evaluate("location.hash"),
        "row": page.evaluate("document.querySelector(':target')?.innerText"),
        "in_view": page.evaluate(
            "(() => { const box = document.querySelector(':target').getBoundingClientRect();"
            " return box.bottom > 0 && box.top < innerHeight; })()"
        ),
    }


def main(folder: Path) -> None:
    answer: dict[str, Any] = {}
    with sync_playwright() as programs:
        browser = programs.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for file in sorted(folder.glob("*.html")):
            for scheme in ("light", "dark"):
                for width in (1200, 400):
                    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
                    answer[f"{file.stem} {scheme} {width}"] = look(page, file)
                    page.screenshot(path=folder / f"{file.stem}_{scheme}_{width}.png")
                    page.close()
        browser.close()
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
