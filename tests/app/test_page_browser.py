"""The page in a real browser: the slider, the keyboard, no network, no script from the data, phone, dark and paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from summaries import LONG, full_summary

from pue.app.page import write_page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no system Chromium: install Debian's package chromium")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCRIPT, IMAGE = "<script>alert(1)</script>", '<img src="x" onerror="alert(2)">'
START = 84  # where the fixture's threshold of 0.42 is on its curve


def hostile_summary() -> dict[str, Any]:
    """Names that would run or fetch if they were not text, and names that are far too long."""
    summary = full_summary()
    bad = [SCRIPT, IMAGE, LONG * 3, "x" * 200]
    summary["title"] = "".join(bad)
    summary["threshold"]["rule"] = "".join(bad)
    summary["data"] |= {"source": SCRIPT, "label": IMAGE, "columns": [{"name": name, "kind": name} for name in bad]}
    summary["data"]["dropped"] = [{"name": name, "reason": name} for name in bad]
    summary["drivers"] = [{"name": name, "difference": 0.5} for name in bad]
    summary["top_rows"] = {"columns": bad, "rows": [bad, bad[::-1]]}
    summary["method"]["history"][3] = {"epoch": SCRIPT, "risk": IMAGE, "validation": SCRIPT}
    summary["method"] |= {"display": IMAGE, "settings": {name: name for name in bad}}
    summary["warnings"] = summary["advice"] = bad
    return summary


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    summaries = {"full": full_summary(), "hostile": hostile_summary()}
    return {name: write_page(summary, folder / f"{name}.html") for name, summary in summaries.items()}


class Visit:
    """An open page, and everything it said, asked for or popped up."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **context})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)

    def words(self) -> dict[str, str]:
        return self.page.evaluate(
            """Object.fromEntries(
                [...document.querySelectorAll('[data-words]')].map(e => [e.dataset.words, e.textContent])
            )"""
        )


@pytest.fixture
def visit(browser: Any, files: dict[str, Path]) -> Iterator[Any]:
    visits: list[Visit] = []

    def go(name: str = "full", **context: Any) -> Visit:
        visits.append(Visit(browser, files[name], **context))
        return visits[-1]

    yield go
    for each in visits:
        each.context.close()
        assert each.said == []
        assert each.requests == [each.url]


def move(page: Any, index: int) -> None:
    page.locator("#threshold-slider").evaluate(
        "(slider, index) => { slider.value = index; slider.dispatchEvent(new Event('input')); }", index
    )


# ------------------------------------------------------------------------------------------- the threshold


def test_the_slider_shows_the_numbers_of_the_curve(visit):
    seen, curve = visit(), full_summary()["curve"]
    for index in (40, 120, 140, START):
        move(seen.page, index)
        point, words = curve[index], seen.words()
        assert words["threshold"] == f"{point['threshold']:.3f}"
        for name in ("precision", "recall"):
            low, value, high = (100 * point[key] for key in (f"{name}_low", name, f"{name}_high"))
            assert words[name] == f"{value:.1f}%"
            assert words[f"{name}_interval"] == f"{low:.1f}–{high:.1f}%"
        assert words["f1"] == f"{point['f1']:.3f}"
        assert words["flagged"] == f"{round(point['flagged'] * 11_276):,}"
        assert words["flagged_share"] == f"{100 * point['flagged']:.1f}% of 11,276 rows"


def test_the_markers_stand_at_the_threshold_on_both_charts(visit):
    seen = visit()
    for index in (20, 150):
        move(seen.page, index)
        for chart in ("curve", "threshold-scores"):
            inside = f"svg[aria-labelledby^='{chart}-title']"
            left, right, at = seen.page.evaluate(
                """inside => {
                    const middle = e => { const r = e.getBoundingClientRect(); return (r.left + r.right) / 2; };
                    const find = text => [...document.querySelectorAll(inside + ' .tick.middle')]
                        .find(e => e.textContent === text);
                    return [middle(find('0')), middle(find('1')), middle(document.querySelector(inside + ' .marker'))];
                }""",
                inside,
            )
            assert at == pytest.approx(left + index / 200 * (right - left), abs=0.6)


def test_the_keyboard_alone_is_enough(visit):
    seen = visit()
    page, slider = seen.page, seen.page.locator("#threshold-slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert seen.words()["threshold"] == "0.425"
    assert seen.words()["note"].startswith("Dotted: the model’s own threshold of 0.420")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert seen.words()["threshold"] == "0.415"
    page.keyboard.press("Home")
    assert seen.words()["recall"] == "100%"
    page.keyboard.press("End")
    assert seen.words()["precision"] == "–"
    assert page.locator("circle[data-y=precision]").get_attribute("visibility") == "hidden"
    assert slider.get_attribute("aria-valuetext") == "1.00"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert seen.words()["threshold"] == "0.420"
    assert slider.input_value() == str(START)
    assert page.locator("circle[data-y=precision]").get_attribute("visibility") == "visible"


def test_changes_are_announced_and_the_slider_is_named(visit):
    page = visit().page
    assert page.get_by_role("slider", name="Move the threshold").count() == 1
    assert page.locator("output[aria-live=polite] [data-words]").count() == 9
    assert page.get_by_role("img", name="Estimated precision and recall by threshold").count() == 1


def test_without_a_script_the_models_own_threshold_is_shown(visit):
    page = visit(java_script_enabled=False).page
    assert not page.locator("#threshold-slider").is_visible()
    assert "0.420" in page.locator("#threshold-output").inner_text()


# ----------------------------------------------------------------------------------------------- safety


def test_names_that_look_like_scripts_stay_text(visit):
    page = visit("hostile").page
    move(page, 10)
    move(page, START)
    page.wait_for_timeout(200)  # an image that fails to load would tell so a moment later
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    text = page.locator("main").inner_text()
    for place in ("h1", "#notes", "#threshold-output", ".drivers", "#top", ".settings", ".columns"):
        shown = page.locator(place).inner_text()
        assert SCRIPT in shown
        assert IMAGE in shown
    assert text.count(SCRIPT) > 10


def test_the_policy_stops_what_the_page_did_not_bring(visit):
    seen = visit()
    ran = seen.page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.ran = true';
            document.body.append(script);
            return window.ran === true;
        }"""
    )
    assert not ran
    assert len(seen.said) == 1
    assert "Content Security Policy" in seen.said.pop()


# ---------------------------------------------------------------------------------------------- the look


@pytest.mark.parametrize("name", ["full", "hostile"])
@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_wider_than_the_screen(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 740}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        """width => [...document.querySelectorAll('main *')]
            .filter(e => !e.closest('.scroll') && !e.closest('.unseen') && !e.closest('svg svg'))
            .filter(e => e.getBoundingClientRect().right > width || e.getBoundingClientRect().left < 0)
            .map(e => e.outerHTML.slice(0, 120))""",
        width,
    )
    assert wide == []
    assert page.locator(".scroll").evaluate("e => e.scrollWidth >= e.clientWidth")


@pytest.mark.parametrize("width", [360, 1100])
def test_no_two_labels_of_a_chart_overlap(visit, width):
    page = visit(viewport={"width": width, "height": 740}).page
    overlaps, smallest = page.evaluate(
        """() => {
            const pairs = [];
            let smallest = 99;
            for (const chart of document.querySelectorAll('svg.chart')) {
                const boxes = [...chart.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
                for (const [, box] of boxes) if (box.height) smallest = Math.min(smallest, box.height);
                boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
                    const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
                    const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
                    if (across > 0 && down > 3) pairs.push(a + ' / ' + b);
                }));
            }
            return [pairs, smallest];
        }"""
    )
    assert overlaps == []
    assert smallest >= 10


CONTRAST = """() => {
    const numbers = color => color.match(/[0-9.]+/g).map(Number);
    const channel = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = e => {
        for (; e; e = e.parentElement) {
            const color = numbers(getComputedStyle(e).backgroundColor);
            if (color.length === 3 || color[3] > 0) return color;
        }
        return [255, 255, 255];
    };
    const found = {};
    const places = ['body', '.read', '.dateline', 'small', 'a', '.warnings .read', '.warnings li', 'td', 'thead th',
                    'button', '.panel .name', 'svg .tick', 'svg .label'];
    for (const place of places) {
        const e = document.querySelector(place), style = getComputedStyle(e);
        const [a, b] = [numbers(e instanceof SVGElement ? style.fill : style.color), behind(e)].map(light);
        found[place] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(visit, scheme):
    page = visit(color_scheme=scheme).page
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(253, 253, 251)", "dark": "rgb(23, 25, 28)"}[scheme]
    contrast = page.evaluate(CONTRAST)
    assert {place: ratio for place, ratio in contrast.items() if ratio < 4.5} == {}
    assert contrast["body"] >= 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_shows_the_chosen_threshold_in_dark_ink(visit, scheme):
    page = visit(color_scheme=scheme).page
    move(page, 120)
    page.emulate_media(media="print", color_scheme=scheme)
    assert not page.locator("#threshold-slider").is_visible()
    assert not page.locator("#threshold-reset").is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator("[data-words=threshold]").is_visible()
    assert page.locator("[data-words=threshold]").inner_text() == "0.600"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(30, 31, 33)"
    assert page.evaluate(CONTRAST)["td"] >= 7


@pytest.mark.parametrize(("width", "height"), [(1100, 850), (390, 844)], ids=["desktop", "phone"])
def test_verdict_precision_and_next_step_are_seen_without_scrolling(visit, width, height):
    page = visit("full", viewport={"width": width, "height": height}).page
    assert page.locator(".trust").inner_text().count("Next:") == 1
    figure = page.locator(".figures > div", has_text="Precision")
    assert "–" in figure.locator("small").inner_text(), "with its interval"
    for seen in (page.locator(".trust"), figure):
        box = seen.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height


def test_paper_shows_colors_and_no_frame_around_charts(visit):
    page = visit("full").page
    page.emulate_media(media="print")
    style = "element => [getComputedStyle(element).borderLeftWidth, getComputedStyle(element).paddingLeft]"
    assert {tuple(page.evaluate(style, each)) for each in page.query_selector_all("main svg")} == {("0px", "0px")}
    assert page.evaluate(style, page.query_selector(".trust"))[0] == "6px"
