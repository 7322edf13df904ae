"""The page to answer on, in a real browser: a hundred rows by keys, a reload, hostile cells, a phone."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_page_browser import ARGUMENTS, IMAGE, NAMES, SCRIPT, Visit

from pue import audit
from pue.app.audit.page import write_answer_page
from pue.app.audit.record import Record, read_record
from pue.app.audit.sheet import ANSWER, read_sheet, read_table, write_sheet
from pue.errors import MissingData

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no system Chromium: install Debian's package chromium")

N = 100
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HOSTILE = (SCRIPT, IMAGE, "=cmd|' /C calc'!A0", "</script><b>x", "long " * 80, 'naïve ✓, "quoted"\nsecond line')


def make_sheet(folder: Path, n: int = N) -> Path:
    """A sheet as the command writes it, without a model."""
    plan = audit.plan(np.linspace(0, 1, 1000), n=n)
    ids = tuple(f"c{row}" for row in plan.rows)
    record = Record(plan, ids, "claim", False, "m", "claims.csv", "0", False)
    path = folder / "to_check.csv"
    record.write(path)
    cells = [[HOSTILE[k % len(HOSTILE)], f"{k}.png", k] for k in range(n)]
    write_sheet(path, record, [SCRIPT, "file", "amount"], cells)
    return path


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sheet(tmp_path_factory.mktemp("answers"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, sheet: Path) -> Iterator[Any]:
    visits: list[Visit] = []
    write_answer_page(sheet, sheet.with_name("audit.html"))

    def go(**context: Any) -> Visit:
        visits.append(Visit(browser, sheet.with_name("audit.html"), **context))
        return visits[-1]

    yield go
    for each in visits:
        each.context.close()
        assert each.said == []
        assert set(each.requests) <= {each.url} | {url for url in each.requests if url.startswith(("blob:", "data:"))}


def saved(page: Any, folder: Path) -> Path:
    with page.expect_download() as download:
        page.keyboard.press("s")
    path = folder / "to_check.csv"
    download.value.save_as(path)
    assert download.value.suggested_filename == "to_check.csv"
    return path


def test_a_hundred_rows_are_answered_by_keys_and_saved_as_the_sheet(visit, sheet, tmp_path):
    page = visit().page
    keys = [("y", "n", "?")[k % 3] for k in range(N)]
    for key in keys:
        page.keyboard.press(key)
    assert page.locator("#count").inner_text() == "100 of 100 answered"
    assert page.locator("#place").inner_text() == "That was the last row."
    record = read_record(sheet)
    path = saved(page, tmp_path)
    filled = read_sheet(path, record)
    assert np.isnan(filled.answers).sum() == keys.count("?")
    assert np.nansum(filled.answers) == keys.count("y")
    order = [record.ids[k] for k in range(N) if filled.answers[k] == 1]
    assert order == [record.ids[k] for k in range(N) if keys[k] == "y"]
    at = read_table(sheet)[0].index(ANSWER)
    with_answers = [[cell for k, cell in enumerate(row) if k != at] for row in read_table(path)[1]]
    assert with_answers == [[cell for k, cell in enumerate(row) if k != at] for row in read_table(sheet)[1]]


def test_a_reload_loses_nothing_and_back_goes_back(visit):
    page = visit().page
    for key in ("y", "n", "y", "Backspace", "Backspace"):
        page.keyboard.press(key)
    assert page.locator("#place").inner_text() == "Row 2 of 100"
    assert page.locator("#said").inner_text() == "Answered: no"
    page.reload()
    assert page.locator("#count").inner_text() == "3 of 100 answered"
    assert page.locator("#place").inner_text() == "Row 2 of 100"
    page.keyboard.press("u")
    page.keyboard.press("Backspace")
    assert page.locator("#said").inner_text() == "Answered: unknown"


def test_a_reload_before_the_storage_is_written_loses_nothing(visit):
    page = visit().page
    page.keyboard.press("y")
    page.evaluate("localStorage.clear()")  # as if the reload had come first
    page.reload()
    assert page.locator("#count").inner_text() == "1 of 100 answered"


def test_hostile_text_stays_text(visit):
    page = visit().page
    for shown in HOSTILE:
        assert page.locator("dd").nth(1).evaluate("cell => cell.textContent") == shown
        assert page.locator("dt").nth(1).inner_text() == SCRIPT
        page.keyboard.press("ArrowRight")
    assert page.locator("script").count() == 2
    assert page.locator("main b").count() == 0


def test_the_score_and_the_probability_do_not_lead_the_answers(visit):
    page = visit().page
    assert "inclusion" not in page.locator("main").inner_text()
    assert not page.locator("#picture").is_visible()


def test_buttons_do_what_keys_do_on_a_phone(visit):
    page = visit(viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True).page
    page.locator("[data-answer=no]").tap()
    assert page.locator("#count").inner_text() == "1 of 100 answered"
    page.get_by_role("button", name="Back").tap()
    assert page.locator("[data-answer=no]").get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    heights = page.locator("nav button").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert min(heights) >= 44


def test_images_are_inside_the_page(browser, tmp_path):
    path = make_sheet(tmp_path, n=6)
    with pytest.raises(MissingData, match=r"there is no image '\d\.png'"):
        write_answer_page(path, tmp_path / "audit.html", tmp_path)
    for k in range(6):
        (tmp_path / f"{k}.png").write_bytes(PIXEL)
    assert write_answer_page(path, tmp_path / "audit.html", tmp_path) == 6
    seen = Visit(browser, tmp_path / "audit.html")
    assert seen.page.locator("#picture").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    seen.context.close()
    assert [url for url in seen.requests if not url.startswith("data:")] == [seen.url]


def test_answers_that_are_there_are_kept(visit, sheet, browser, tmp_path):
    path = make_sheet(tmp_path, n=6)
    page = Visit(browser, _page(path))
    page.page.keyboard.press("y")
    filled = saved(page.page, tmp_path)
    page.context.close()
    again = Visit(browser, _page(filled))
    assert again.page.locator("#count").inner_text() == "1 of 6 answered"
    assert again.page.locator("#place").inner_text() == "Row 2 of 6"
    again.context.close()


def _page(sheet: Path) -> Path:
    write_answer_page(sheet, sheet.with_name("audit.html"))
    return sheet.with_name("audit.html")
