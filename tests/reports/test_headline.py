"""The table that the terminal shows."""

from __future__ import annotations

from irgauge.reports.headline import headline_text
from irgauge.reports.numbers import percent
from irgauge.reports.summary import OURS, Summary


def test_one_line_a_target_with_every_split(summary: Summary) -> None:
    lines = headline_text(summary).splitlines()
    for split in ("random", "program", "family", "real"):
        assert split in lines[0]
    for line, target in zip(lines[2:], summary.targets, strict=False):
        assert line.startswith(target.name)
        assert line.count("(") == 4  # the best baseline beside each split


def test_numbers_are_those_of_the_summary(summary: Summary) -> None:
    target = summary.targets[0]
    line = headline_text(summary).splitlines()[2]
    assert percent(target.figure("program", OURS, "mape"), most=9.99).replace("\u202f", " ") in line
    assert line.rstrip().endswith(percent(target.figure("program", OURS, "regret1")).replace("\u202f", " "))


def test_it_fits_a_terminal(summary: Summary) -> None:
    assert max(map(len, headline_text(summary).splitlines())) <= 130


def test_rows_and_seed_are_named(summary: Summary) -> None:
    last = headline_text(summary).splitlines()[-1]
    assert "75 records of 25 programs" in last
    assert "seed 0" in last
