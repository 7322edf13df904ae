"""The page: which sections there are, that names stay text, that nothing is fetched, and that numbers read well."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from summaries import diagnosis_summary, full_summary

from pue.app.page import render_page, write_page
from pue.app.page.curves import ACROSS, history, threshold_curve
from pue.app.page.histograms import LABELED, UNLABELED, bins, histogram, null_histogram, tails
from pue.app.page.svg import Scale, breakable, tag
from pue.app.thumbnails import is_thumbnail, thumbnail
from pue.judging.estimates import ESTIMATED

SCRIPT, IMAGE = "<script>alert(1)</script>", '"><img src=x onerror=alert(2)>\u2028&'
VOID = {"meta", "link", "input", "wbr", "br", "hr", "img"}
INLINE = {"wbr", "strong", "span"}

NEEDED = {
    "notes": ["warnings", "advice"],
    "threshold": ["threshold", "curve"],
    "metrics": ["metrics", "scar_metrics"],
    "bias": ["scar", "drivers"],
    "prior": ["prior"],
    "propensity": ["propensity"],
    "scores": ["scores"],
    "calibration": ["calibration"],
    "bounds": ["bounds"],
    "top": ["top_rows"],
    "history": ["method"],
    "made": ["data", "method", "version"],
}


class Read(HTMLParser):
    """Elements, attributes and text of a page; fails on an element that is closed by the wrong end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [] if tag in INLINE else [" "]
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        kind = {"script": self.scripts, "style": self.styles}
        kind.get(self.open[-1] if self.open else "", self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def sections(self) -> list[str | None]:
        return [attributes.get("id") for tag, attributes in self.elements if tag == "section"]

    def values(self, attribute: str) -> list[str | None]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]


def read(summary: dict[str, Any]) -> Read:
    return Read(render_page(summary))


def replaced(value: Any, change: Any) -> Any:
    """A summary in which `change` was applied to every leaf."""
    if isinstance(value, dict):
        return {name: replaced(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, change) for each in value]
    return change(value)


# --------------------------------------------------------------------------------------------- sections


def test_all_sections_in_their_order():
    assert read(full_summary()).sections == list(NEEDED)


@pytest.mark.parametrize("section", NEEDED)
@pytest.mark.parametrize("gone", ["absent", "none", "empty"])
def test_a_section_is_left_out_without_its_data(section, gone):
    summary = full_summary()
    for name in NEEDED[section]:
        empty = {"none": None, "empty": type(summary[name])()}
        if gone == "absent":
            del summary[name]
        else:
            summary[name] = empty[gone]
    assert section not in read(summary).sections


@pytest.mark.parametrize("section", NEEDED)
def test_a_section_needs_nothing_but_its_own_data(section):
    summary = full_summary()
    page = read({name: summary[name] for name in NEEDED[section]})
    also = {"made": {"history", "made"}, "history": {"history", "made"}}
    assert set(page.sections) == also.get(section, {section})


@pytest.mark.parametrize("name", [name for names in NEEDED.values() for name in names if len(names) > 1])
def test_half_of_a_sections_data_is_enough(name):
    summary = full_summary()
    section = next(section for section, names in NEEDED.items() if name in names and len(names) > 1)
    assert section in read({name: summary[name]}).sections


def test_nothing_at_all_is_a_page():
    page = read({})
    assert page.sections == []
    assert page.text.count("Positive-unlabeled report") == 2  # the window's title and the heading


def test_a_diagnosis_alone():
    page = read(diagnosis_summary())
    assert page.sections == ["notes", "bias", "prior", "propensity", "made"]
    assert "The labels are not a fair sample of the positives." in page.text
    assert "About 30.1% of all rows are positive (26.8–33.7%)." in page.text
    assert "threshold-slider" not in page.values("id")
    assert "estimate without negatives" not in page.text


def test_the_contents_name_the_sections_that_are_there():
    for summary in (full_summary(), diagnosis_summary()):
        page = read(summary)
        links = [link for link in page.values("href") if link and link.startswith("#")]
        assert links == [f"#{name}" for name in page.sections if name != "notes"]


# -------------------------------------------------------------------------------------------- what it says


def test_the_headline_says_what_was_learnt_and_that_it_is_an_estimate():
    text = read(full_summary()).text
    assert "the model finds 75.3% of the positives at its threshold of 0.420, and 81.2% of the rows it flags" in text
    assert "An estimate without negatives" in text
    assert "12,480 rows from applicants.csv: 1,204 labeled positive and 11,276 unlabeled." in text
    assert "Learnt with nnPUe (mlp), in 38.4 seconds." in text
    assert "F1 0.781 0.742–0.815 Precision 81.2% 76.2–85.8% Recall 75.3% 70.1–80.2%" in text


def test_known_negatives_are_not_denied():
    summary = full_summary()
    summary["data"] |= {"n_negative": 12, "scenario": "case_control"}
    text = read(summary).text
    assert "without negatives" not in text
    assert "1,204 labeled positive, 12 labeled negative and 11,276 unlabeled." in text
    assert "collected beside the unlabeled sample" in text


def test_a_trivial_predictor_is_called_one_first_and_beside_its_metrics():
    summary = full_summary()
    summary["metrics"]["trivial"] = "It flags every row."
    text = read(summary).text
    assert text.count("This is a trivial predictor. It flags every row.") == 2
    assert text.index("trivial predictor") < text.index("By estimate")
    assert "trivial" not in read(full_summary()).text


def test_labels_that_pass_the_test_and_a_prior_that_was_given():
    summary = diagnosis_summary()
    summary["scar"] |= {"rejected": False, "p_value": 0.31}
    summary["prior"] |= {"low": 0.301, "high": 0.301, "method": "given", "assumes": "nothing"}
    text = read(summary).text
    assert "Nothing shows that the labels are an unfair sample of the positives." in text
    assert "No bias was found. " in text
    summary["scar"]["text"] = ""
    assert "No bias was found (p = 0.31, statistic 0.162)." in read(summary).text
    assert "30.1%. It was given, not estimated." in text


def test_an_alarm_about_the_weights_is_shown():
    summary = full_summary()
    summary["propensity"]["alarm"] = "few rows carry all the weight"
    assert "Do not trust these weights yet: few rows carry all the weight" in read(summary).text


def test_metrics_stand_beside_their_scar_versions():
    text = read(full_summary()).text
    assert "F1 0.781 0.742–0.815 0.841 0.802–0.875 AUC" in text
    alone = full_summary()
    del alone["scar_metrics"]
    assert "If labels were unbiased" not in read(alone).text


def test_metrics_come_in_the_order_of_all_tables_and_others_are_left_out():
    summary = full_summary()
    summary["metrics"]["values"] |= {"zeta": {"value": 1.5, "low": 1, "high": 2}}
    page = read(summary)
    after = page.text[page.text.index("If labels were unbiased Accuracy") :]
    places = [after.index(f" {title[:1].upper()}{title[1:]} ") for title in ESTIMATED.values()]
    assert places == sorted(places)
    assert "zeta" not in page.text


def test_rows_of_the_table_keep_whole_numbers_and_settings_are_as_typed():
    text = read(full_summary()).text
    assert "104233 0.997 61 91,250 north" in text
    assert "Seed 20260301" in text
    assert "lr 0.001" in text
    assert "warm yes" in text


def test_what_is_long_is_cut_and_said_to_be():
    summary = full_summary()
    summary["drivers"] = [{"name": f"x{k}", "difference": 1 - k / 50} for k in range(40)]
    summary["top_rows"]["rows"] *= 10
    summary["data"]["columns"] *= 100
    text = read(summary).text
    assert "and 28 columns with smaller differences" in text
    assert "and 20 more rows" in text
    assert "and 200 more" in text


# -------------------------------------------------------------------------------------------- the threshold


def points(page: Read) -> dict[str, Any]:
    return json.loads(page.scripts[0])


def test_the_script_gets_every_point_of_the_curve_in_words():
    summary = full_summary()
    data = points(read(summary))
    assert len(data["points"]) == 201
    assert data["start"] == 84
    for known, point in zip(summary["curve"], data["points"], strict=True):
        words = point["words"]
        assert float(words["threshold"]) == pytest.approx(known["threshold"], abs=5e-4)
        assert words["precision"] == ("–" if known["precision"] is None else f"{100 * known['precision']:.1f}%")
        assert words["flagged"] == f"{round(known['flagged'] * 11_276):,}"
        assert point["at"]["threshold"] == pytest.approx(ACROSS(known["threshold"]), abs=0.05)


def test_without_a_script_the_models_own_threshold_is_shown():
    text = read(full_summary()).text
    assert "Threshold 0.420 Precision 81.2% 76.7–84.5% Recall 75.3% 70.8–79.8% F1 0.781 Flagged 3,148" in text
    assert "27.9% of 11,276 rows This is the model’s own threshold of 0.420 (the estimated prior’s share" in text


def test_a_threshold_between_two_points_of_the_curve_is_not_claimed_to_be_one():
    summary = full_summary()
    summary["threshold"] = {"value": 0.4234, "rule": ""}
    page = read(summary)
    assert points(page)["start"] == 85
    assert "This is the point nearest to the model’s own threshold of 0.423." in page.text


def test_no_threshold_of_its_own_starts_in_the_middle_and_none_is_mentioned():
    summary = full_summary()
    summary["threshold"] = None
    page = read(summary)
    assert points(page)["start"] == 100
    assert "own threshold" not in page.text


def test_a_threshold_without_a_curve_is_said():
    page = read({"threshold": {"value": 0.3, "rule": "largest F1"}})
    assert "The threshold is 0.300 (largest F1)." in page.text
    assert "threshold-slider" not in page.values("id")


# ---------------------------------------------------------------------------------- safe and self-contained


@pytest.mark.parametrize("bad", [SCRIPT, IMAGE])
def test_every_text_of_the_data_stays_text(bad):
    plain, hostile = full_summary(), full_summary()
    hostile = replaced(hostile, lambda leaf: f"{leaf}{bad}" if isinstance(leaf, str) else leaf)
    hostile["data"]["scenario"] = plain["data"]["scenario"]
    hostile["method"]["settings"] = {f"{name}{bad}": bad for name in plain["method"]["settings"]}
    hostile["metrics"]["values"][bad] = hostile["scar_metrics"]["values"][bad] = {"value": 0.5, "low": 0.4, "high": 0.6}
    hostile["method"]["history"][0]["epoch"] = bad
    before, after = read(plain), read(hostile)
    assert {name for name, _ in after.elements} == {name for name, _ in before.elements}
    assert len(after.scripts) == len(before.scripts) == 2
    assert after.scripts[1] == before.scripts[1]
    assert bad in points(after)["points"][84]["words"]["note"]
    assert not [name for _, attributes in after.elements for name in attributes if name.startswith("on")]
    assert after.text.count(" ".join(bad.split())) >= 30


def test_json_in_the_page_has_no_character_that_html_or_a_script_reads():
    summary = full_summary()
    summary["threshold"]["rule"] = f"{SCRIPT}{IMAGE}\u2029"
    [data] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', render_page(summary), re.DOTALL)
    assert set("<>&'\u2028\u2029") & set(data) == set()


def test_nothing_is_fetched():
    page = render_page(full_summary())
    parsed = Read(page)
    assert "http" not in page.replace("http-equiv", "")
    assert parsed.values("src") == []
    assert {link for link in parsed.values("href") if not (link or "").startswith("#")} == {"data:,"}
    assert parsed.values("style") == []
    assert "url(" not in page
    assert "@import" not in page


def test_the_policy_allows_the_pages_own_style_and_script_alone():
    page = read(full_summary())
    [policy] = [attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes]

    def seal(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    [style] = page.styles
    assert policy == (
        f"default-src 'none'; style-src {seal(style)}; script-src {seal(page.scripts[1])}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_dashes(nothing):
    hollow = replaced(full_summary(), lambda leaf: nothing if isinstance(leaf, float | int) else leaf)
    page = read(hollow)
    assert "–" in page.text
    written = [page.text, *(str(value) for _, attributes in page.elements for value in attributes.values() if value)]
    assert not [text for text in written if re.search(r"\b(nan|inf|None)\b", text)]
    assert "threshold" not in page.sections


def test_one_missing_estimate_is_a_dash():
    summary = full_summary()
    summary["metrics"]["values"]["recall"] = {"value": float("nan"), "low": None, "high": 0.9}
    text = read(summary).text
    assert "Recall – – to 90.0%" in text
    assert "By estimate, the model finds" not in text


def test_identifiers_are_unique_and_every_chart_has_a_title():
    page = read(full_summary())
    names = page.values("id")
    assert len(names) == len(set(names))
    charts = [attributes for tag, attributes in page.elements if attributes.get("class") == "chart"]
    assert len(charts) == 11
    for chart in charts:
        assert chart["role"] == "img"
        assert set(str(chart["aria-labelledby"]).split()) <= set(names)


def test_large_data_do_not_make_a_large_page():
    summary = full_summary()
    summary["scar"]["null"] *= 20
    summary["drivers"] *= 1000
    summary["data"]["columns"] *= 1000
    summary["data"]["dropped"] *= 1000
    summary["top_rows"]["rows"] *= 1000
    summary["method"]["history"] *= 200
    assert len(render_page(full_summary()).encode()) < 200_000
    assert len(render_page(summary).encode()) < 400_000


def test_the_same_summary_gives_the_same_page_and_is_not_changed():
    summary = full_summary()
    before = copy.deepcopy(summary)
    assert render_page(summary) == render_page(json.loads(json.dumps(summary)))
    assert summary == before


# ------------------------------------------------------------------------------------------------ on disk


def test_a_page_is_written_whole(tmp_path: Path):
    path = write_page(full_summary(), tmp_path / "new" / "page.html")
    assert path.read_text(encoding="utf-8") == render_page(full_summary())
    assert os.listdir(path.parent) == ["page.html"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path: Path):
    path = write_page(diagnosis_summary(), tmp_path / "page.html")
    with pytest.raises(TypeError):
        write_page({"curve": 3}, path)
    assert path.read_text(encoding="utf-8") == render_page(diagnosis_summary())
    assert os.listdir(tmp_path) == ["page.html"]


def test_the_old_page_stands_until_the_new_one_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_page(diagnosis_summary(), tmp_path / "page.html")
    seen = {}

    def replace(partial: Path, final: Path) -> None:
        seen["new"], seen["old"] = Path(partial).read_text(encoding="utf-8"), Path(final).read_text(encoding="utf-8")

    monkeypatch.setattr(os, "replace", replace)
    write_page(full_summary(), path)
    assert seen == {"new": render_page(full_summary()), "old": render_page(diagnosis_summary())}


# ------------------------------------------------------------------------------------------------- charts


def test_bars_stand_where_their_edges_are():
    drawn = str(histogram("h", "t", "d", {LABELED: [(0.0, 0.5, 2.0), (0.5, 1.0, 1.0)], UNLABELED: []}, "x"))
    [path] = re.findall(r'<path d="([^"]*)" class="first"', drawn)
    corners = [tuple(map(float, pair.split())) for pair in re.split("[ML]", path)[1:]]
    assert [x for x, _ in corners] == [40, 40, 182, 182, 324, 324]
    floor, two, one = corners[0][1], corners[1][1], corners[3][1]
    assert floor - two == pytest.approx(2 * (floor - one), abs=0.2)
    assert corners[-1][1] == floor


def test_a_series_far_higher_than_the_other_is_cut_and_said_to_be():
    low, high = [(0.0, 0.5, 1.0), (0.5, 1.0, 0.5)], [(0.0, 0.5, 60.0), (0.5, 1.0, 0.2)]
    assert "the tallest bars are cut" in str(histogram("h", "t", "d", {LABELED: low, UNLABELED: high}, "x"))
    assert "cut" not in str(histogram("h", "t", "d", {LABELED: low, UNLABELED: low}, "x"))
    assert "cut" not in str(histogram("h", "t", "d", {LABELED: [(0.0, 1.0, 0.0)], UNLABELED: high}, "x"))


def test_bins_that_are_not_known_are_left_out():
    assert bins([0, 1, 2, None], [0.5, float("nan"), 1.0]) == [(0.0, 1.0, 0.5)]
    assert bins(None, None) == []
    assert tails([]) == []


def test_nothing_to_draw_is_no_chart():
    assert histogram("h", "t", "d", {LABELED: []}, "x") is None
    assert null_histogram([], 0.1) is None
    assert history([{"epoch": 1, "risk": None}]) is None


def test_equal_values_can_be_drawn():
    assert "<path" in str(null_histogram([0.1] * 20, 0.1))
    assert "<path" in str(history([{"epoch": 1, "risk": 0.5}, {"epoch": 1, "risk": 0.5}]))


def test_a_line_breaks_where_a_value_is_missing():
    known = [{"threshold": t, "precision": p} for t, p in ((0.0, 0.5), (0.5, None), (0.6, 0.7), (1.0, 0.9))]
    [path] = re.findall(r'<path d="([^"]*)" class="first"', str(threshold_curve(known, tag("g"))))
    assert path.count("M") == 2
    assert path.count("L") == 1


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.0123, -0.001), (0.0, 37_000.0), (0.9991, 0.9999)])
def test_ticks_are_few_distinct_and_inside(low, high):
    ticks = Scale(low, high, 0, 100).ticks(5)
    assert 2 <= len(set(ticks)) == len(ticks) <= 7
    assert low - 1e-9 <= ticks[0] < ticks[-1] <= high + 1e-9


def test_long_names_can_be_broken():
    assert str(breakable("x" * 45)).split("<wbr>") == ["x" * 20, "x" * 20, "x" * 5]
    assert breakable("") == ""


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({}, "good", "Its numbers can be used."),
        ({"precision": {"value": 0.7, "low": 0.5, "high": 0.8}}, "careful", "may be anything from 50.0% to 80.0%"),
        ({"precision": {"value": 0.6, "low": 0.2, "high": 0.9}}, "poor", "Do not rely on its numbers yet."),
    ],
)
def test_the_page_leads_with_a_verdict(change, level, words):
    summary = full_summary()
    summary["metrics"]["values"] |= change
    summary["propensity"] |= {"effective_sample_size": 400.0, "alarm": None}
    page = render_page(summary)
    assert f'<div class="trust {level}">' in page
    text = Read(page).text
    assert words in text
    assert text.index("Next:") < text.index("By estimate")


def test_few_labels_are_said_first_and_a_diagnosis_has_no_verdict():
    summary = full_summary()
    summary["propensity"]["effective_sample_size"] = 12.0
    text = read(summary).text
    assert "Do not rely on its numbers yet. After weighting, the labels are worth 12 rows." in text
    assert "Next: Label more positives" in text
    assert 'class="trust' not in render_page(diagnosis_summary())


def test_what_was_done_is_no_advice():
    summary = full_summary()
    done = 'The labels are biased: estimate propensities (propensity="auto") and let the method weight by them.'
    summary["advice"] = [f"{done} Next, label positives with low age: they are rare among the labels."]
    text = read(summary).text
    assert "estimate propensities" not in text
    assert "Next, label positives with low age" in text
    assert "estimate propensities" in read({**diagnosis_summary(), "advice": summary["advice"]}).text


def test_thumbnails_stand_in_the_table_and_nothing_else_does() -> None:
    summary = full_summary()
    rows = summary["top_rows"]["rows"]
    picture = thumbnail(np.full((1, 8, 8), 7, dtype=np.uint8))
    start = "data:image/png;base64,"
    for bad in ("https://example.org/x.png", "data:text/html;base64,AAAA", f"{picture}'", start + "A" * 30_000):
        summary["top_rows"]["images"] = [picture, bad, *[picture] * (len(rows) - 2)]
        html = render_page(summary)
        assert html.count("<img ") == len(rows) - 1
        assert bad not in html
    summary["top_rows"]["images"] = [picture]
    assert "<img " not in render_page(summary), "pictures that do not belong to the rows are left out"


def test_a_thumbnail_is_small_whatever_the_image() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (3, 500, 300), dtype=np.uint8)
    assert is_thumbnail(thumbnail(noise))
    assert len(thumbnail(noise)) < 20_000


def test_the_printed_page_keeps_its_rules_to_itself() -> None:
    """What belongs to the screen once stood inside the rules for paper, and every chart became a verdict."""
    style = (resources.files("pue.app.page") / "page.css").read_text()
    printed = style.partition("@media print {")[2]
    assert "border-left" not in printed
    assert style.count(".trust {") == 1


def test_what_is_nearly_nothing_is_said_to_be() -> None:
    summary = full_summary()
    summary["calibration"]["bins"] = [{"predicted": 3e-6, "estimated": 0.0, "low": 0.0, "high": 0.0, "share": 0.1}] * 2
    text = read(summary).text
    assert "<0.1% 0% 0% 10.0%" in text
    assert "0–0%" not in text
