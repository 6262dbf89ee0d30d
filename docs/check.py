"""check.py HTML: opens every page of the site in Chromium, wide and on a phone, in the light and in the dark.

A page must load, run without an error, draw each formula and each picture, fit the phone's width, fetch nothing from elsewhere,
and have no dead link. What is wrong is printed, a line each; the exit code is 1 then.
"""

import asyncio
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

from playwright.async_api import async_playwright

ROOT = Path(sys.argv[1]).resolve()
VIEWS = {"wide": ((1280, 900), "light"), "phone": ((390, 844), "dark")}
AT_ONCE = 2

# What a page has: links, ids, formulas without a drawing, pictures without content, and what sticks out at the right.
LOOK = """() => {
  const of = (selector, what) => [...document.querySelectorAll(selector)].map(what);
  const shown = e => e.getClientRects().length > 0;
  const size = e => { const box = e.getBoundingClientRect(); return box.width * box.height; };
  return {
    links: of('a[href]', e => e.href),
    ids: of('[id]', e => e.id),
    formulas: document.querySelectorAll('.math').length,
    undrawn: [...document.querySelectorAll('.math')].filter(e => {
      if (e.querySelector('.merror, [data-mml-node="merror"]') || e.textContent.includes('\\\\(')) return true;
      const drawings = [...e.querySelectorAll('.MathJax_SVG svg')];
      return drawings.length === 0 || (shown(e) && drawings.some(d => size(d) === 0));
    }).map(e => e.textContent.slice(0, 60)),
    pictures: document.querySelectorAll('img').length,
    empty: [...document.querySelectorAll('img')].filter(e => !e.complete || e.naturalWidth === 0).map(e => e.src),
    nameless: [...document.querySelectorAll('img')].filter(e => !e.alt).map(e => e.src),
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    text: document.body.innerText.length,
  };
}"""

BUSY = "() => window.MathJax && MathJax.Hub && (MathJax.Hub.queue.pending || MathJax.Hub.queue.running)"
WAIT = "() => !document.querySelector('.math') || (window.MathJax && MathJax.isReady && !document.querySelector('.MathJax_SVG_Processing, .MathJax_Preview:not(:empty)') && document.querySelector('.MathJax_SVG'))"


class Site:
    def __init__(self):
        self.faults = []
        self.ids = {}  # of each page
        self.links = []  # (page, target)
        self.formulas = self.pictures = 0

    async def open(self, context, name, page_file):
        page = await context.new_page()
        where = f"{page_file.relative_to(ROOT)} ({name})"
        fault = lambda text: self.faults.append(f"{where}: {text}")
        page.on("console", lambda message: fault(f"console: {message.text}") if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: fault(f"script: {error}"))
        page.on("requestfailed", lambda request: fault(f"not loaded: {request.url}"))
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else fault(f"fetched: {request.url}"))
        await page.goto(page_file.as_uri(), timeout=120000)
        try:
            await page.wait_for_function(WAIT, timeout=120000)
        except Exception:
            fault("formulas are not drawn in 2 minutes")
        found = await page.evaluate(LOOK)
        for text in found["undrawn"]:
            fault(f"formula not drawn: {text!r}")
        for source in found["empty"]:
            fault(f"picture without content: {source}")
        for source in found["nameless"]:
            fault(f"picture without a text: {source}")
        if found["wider"] > 0:
            fault(f"sticks out by {found['wider']} pixels")
        if found["text"] < 200:
            fault("hardly any text")
        self.ids[page_file] = set(found["ids"])
        self.links += [(where, link) for link in found["links"]]
        self.formulas += found["formulas"]
        self.pictures += found["pictures"]
        await page.close()

    def check_links(self):
        for where, link in sorted(set(self.links)):
            if not link.startswith("file:"):
                continue  # somebody else's page: nothing is fetched
            address, anchor = urldefrag(link)
            target = Path(unquote(urlparse(address).path))
            if not target.exists():
                self.faults.append(f"{where}: dead link: {link}")
            elif anchor and target in self.ids and unquote(anchor) not in self.ids[target]:
                self.faults.append(f"{where}: no such place: {link}")


async def main():
    pages = sorted(ROOT.rglob("*.html"))
    pages = [page for page in pages if "_static" not in page.parts]
    site = Site()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, ((width, height), colours) in VIEWS.items():
            context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=colours, offline=True)
            gate = asyncio.Semaphore(AT_ONCE)

            async def one(page):
                async with gate:
                    await site.open(context, name, page)

            await asyncio.gather(*(one(page) for page in pages))
            await context.close()
        await browser.close()
    site.check_links()
    for fault in sorted(set(site.faults)):
        print(fault)
    if not pages or site.formulas == 0 or site.pictures == 0:
        print("there are no pages, no formulas or no pictures")
        return 1
    print(f"{len(pages)} pages, {len(VIEWS)} views each: {site.formulas} formulas, {site.pictures} pictures, {len(site.links)} links, {len(set(site.faults))} faults")
    return 1 if site.faults else 0


sys.exit(asyncio.run(main()))
