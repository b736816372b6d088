"""One file that holds everything, with every text escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from irgauge.errors import IrgaugeError
from irgauge.reports.render import TEMPLATES, direction, render, write_report
from irgauge.reports.summarize import summarize
from irgauge.reports.summary import Summary

from irgauge.reports.summary import ProgramText  # isort: skip

pytest.importorskip("jinja2")
VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Page(HTMLParser):
    """Tags, attributes and texts of a page; fails on a tag that is closed wrongly."""

    open: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert not page.open
    return page


@pytest.fixture(scope="module")
def html(summary: Summary) -> str:
    return render(summary)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return parsed(html)


def test_nothing_is_loaded_from_elsewhere(html: str, page: Page) -> None:
    assert not {"script", "link", "img", "iframe", "object", "embed", "image", "use"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert name not in ("src", "srcset", "xlink:href", "action", "onload"), (tag, name)
        assert name != "href" or value.startswith("#")
        assert "url(" not in value
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "//" not in style


def test_links_lead_somewhere(page: Page) -> None:
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, name, value in page.attributes if name == "href"} <= set(ids)


def test_every_target_and_split_appears(summary: Summary, page: Page) -> None:
    captions = [value for _, name, value in page.attributes if name == "aria-label"]
    for target in summary.targets:
        assert ("section", "id", target.name) in page.attributes
        for split in summary.splits:
            assert any(c.startswith(f"{target.name}, split {split.name}:") for c in captions)


def test_texts_of_programs_are_escaped(judged) -> None:  # type: ignore[no-untyped-def]
    evil = "// <script>alert('x')</script> & \"quotes\" {{ 7 * 7 }}"
    worst = judged.evaluation.worst("program", "x86-64-v3/latency_ns", 1)[0]
    frame = judged.frame.copy()
    chosen = frame["id"] == worst.id
    frame.loc[chosen, "mlir"] = evil + "\nfunc.func @kernel()\n"
    frame.loc[chosen, "schedule"] = "<img src=x>"
    frame["machine"] = "<b>bold</b>"
    made = render(summarize(judged.evaluation, judged.artifact, frame, shap_rows=2, n_jobs=1, revision="<i>"))
    page = parsed(made)
    assert not {"script", "img"} & set(page.tags)
    text = "".join(page.text)
    for part in (evil, "<img src=x>", "<b>bold</b>", "<i>"):
        assert part in text
    assert "&lt;script&gt;" in made


def test_every_feature_group_has_a_column(summary: Summary, html: str) -> None:
    start = html.index('id="groups"')
    header = html[start : html.index("</thead>", start)]
    for group in {g for t in summary.targets for p in t.shap for g in p.groups}:
        assert f"<th>{group}</th>" in header


def test_a_text_is_quoted_once(summary: Summary, page: Page) -> None:
    quoted = [value for tag, name, value in page.attributes if tag == "pre" and name == "id"]
    assert sorted(quoted) == sorted(f"text-{id}" for id in summary.texts)


def test_left_out_lines_are_counted(summary: Summary) -> None:
    some = next(iter(summary.texts))
    cut = replace(summary, texts={**summary.texts, some: ProgramText(some, "first line", 1200, 1199)})
    assert "1\u202f199 more lines" in render(cut)


def test_versions_dataset_and_seed_are_named(page: Page) -> None:
    text = " ".join(" ".join(page.text).split())
    for part in ("seed 0", "test machine", "llvm 22.1.8", "abc123", "75 records", "lightgbm"):
        assert part in text


def test_missing_split_is_said(summary: Summary) -> None:
    without = replace(
        summary,
        splits=tuple(s for s in summary.splits if s.name != "real"),
        splits_missing=("real",),
    )
    assert re.search(r"<b>real</b><small>not judged", render(without))


def test_nothing_is_marked_safe() -> None:
    for template in TEMPLATES.glob("*.j2"):
        text = template.read_text()
        assert "|safe" not in text.replace(" ", "")
        assert "autoescape" not in text


def test_file_is_written_whole(summary: Summary, html: str, tmp_path: Path) -> None:
    target = tmp_path / "out" / "index.html"
    target.parent.mkdir()
    target.write_text("old")
    assert write_report(summary, target) == target
    assert target.read_text(encoding="utf-8") == html
    assert [p.name for p in target.parent.iterdir()] == ["index.html"]


def test_unwritable_place_is_one_clear_error(summary: Summary, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IrgaugeError, match="cannot be written"):
        write_report(summary, tmp_path / "file" / "index.html")


def test_direction_in_words() -> None:
    assert [direction(c) for c in (0.9, -0.9, 0.1, float("nan"))] == ["raises", "lowers", "mixed", "mixed"]
