"""Names and words from data that look like code: every output of every magic shows them as text."""

from __future__ import annotations

import html.parser
import json
import unicodedata
import xml.etree.ElementTree as ElementTree

import pytest

pytestmark = pytest.mark.long

BAD = '<img src=http://evil.invalid/x onerror=alert(1)><script>alert(2)</script>]]>&amp;\\n" ]; x [URL="javascript:0'
DIRTY = "\u202e[31m\x1b[2J\x07**bold** $x^2$ | a | [l](javascript:1)"

SOURCE = f"""\
%%flinkgraph hostile --parallelism 2
BAD, DIRTY = {BAD!r}, {DIRTY!r}
named = spark.range(0, 20, 1, 2).withColumn(BAD, F.lit(DIRTY)).withColumnRenamed("id", DIRTY)
named.createOrReplaceTempView("hostile_view")
viewed = spark.table("hostile_view").where(F.col("`" + BAD + "`") != BAD)
counted = viewed.groupBy("`" + BAD + "`").agg(F.count(F.lit(BAD)).alias(DIRTY))
counted.coalesce(1).write.mode("overwrite").option("header", True).csv("out <b>&amp; \u202e dir")
"""

FAILS = """\
%%flinkgraph wrecked --run
def explode(value):
    raise ValueError(BAD + DIRTY)
spark.range(3).select(F.udf(explode, "long")("id").alias(BAD)).write.mode("overwrite").json("wrecked")
"""


class Tags(html.parser.HTMLParser):
    """Gathers what a browser would make of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]


def check_html(text: str) -> None:
    seen = Tags()
    seen.feed(text)
    assert seen.tags <= {"div", "details", "summary", "img", "strong", "b", "pre", "br", "span", "p", "code", "table",
                         "tr", "td", "th", "ul", "li", "small", "em"}  # fmt: skip
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert all(address.startswith("data:image/svg+xml") for address in seen.addresses)


def check_svg(text: str) -> None:
    root = ElementTree.fromstring(text)
    for node in root.iter():
        assert node.tag.rpartition("}")[2] in {"svg", "g", "rect", "path", "line", "text", "tspan", "title"}
        assert not [name for name in node.attrib if name.startswith("on") or "href" in name]


def check_text(text: str) -> None:
    """Nothing in it moves a cursor, rings a bell or turns text around."""
    bad = {char for char in text if unicodedata.category(char) in ("Cc", "Cf") and char != "\n"}
    assert bad == set()


CHECKS = {"text/html": check_html, "image/svg+xml": check_svg, "text/plain": check_text}


def check(cell) -> None:
    for bundle in (*cell.displays, *([cell.value] if cell.value else [])):
        for kind, content in bundle.items():
            if kind in CHECKS:
                CHECKS[kind](content)
    check_text(cell.stdout)
    check_text(cell.error)


@pytest.fixture(scope="module")
def hostile(kernel):
    cell = kernel.run(SOURCE)
    assert cell.status == "ok", cell.error
    assert {"text/html", "image/svg+xml", "text/plain"} <= set(cell.displays[0])
    check(cell)
    return kernel


@pytest.mark.parametrize(
    "line",
    ["%flinkrun hostile", "%flinkgraph hostile", "%flinkgraph hostile --view stream", "%flinkgraph",
     "%flinkgraph hostile --view regions", "%flinkjobs", "%flinkjobs hostile --log", "%flinkjobs --retained",
     "%flinksim hostile", "print(hostile.summary())", "%flinkrun hostile\n%flinkjobs hostile --compare",
     "%flinkjobs hostile --findings", "%flinkshow hostile --run 1"],
)  # fmt: skip
def test_a_magic_shows_text(hostile, line: str) -> None:
    cell = hostile.run(line)
    assert cell.status == "ok", cell.error
    assert cell.displays or cell.value or cell.stdout
    check(cell)


def test_what_was_written_is_what_plain_spark_writes(hostile, folder) -> None:
    hostile.run("%flinkrun hostile")
    told = hostile.run("print(spark.read.option('header', True).csv('out <b>&amp; \u202e dir').collect()[0])")
    assert told.status == "ok", told.error
    assert "='20'" in told.stdout


def test_errors_are_text(hostile) -> None:
    cell = hostile.run(FAILS)
    assert cell.error_name == "JobFailedError"
    assert "<script>alert(2)</script>" in cell.error, "shown, not dropped"
    assert "⟨U+202E⟩" in cell.error
    check(cell)
    for line in ("%flinkjobs wrecked --errors", "%flinkjobs wrecked --errors --full", "%flinkjobs wrecked --log"):
        check(hostile.run(line))


def test_files_are_text(hostile, folder) -> None:
    for suffix in ("svg", "dot", "txt", "json"):
        assert hostile.run(f"%flinkgraph hostile --view stream --save hostile.{suffix}").status == "ok"
    check_svg((folder / "hostile.svg").read_text(encoding="utf-8"))
    check_text((folder / "hostile.txt").read_text(encoding="utf-8"))
    json.loads((folder / "hostile.json").read_text(encoding="utf-8"))
    assert hostile.run("%flinkrun hostile\nhostile.jobs[-1].save_report('hostile.html')").status == "ok"
    page = (folder / "hostile.html").read_text(encoding="utf-8")
    check_text(page)
    assert "<script" not in page
    dot = (folder / "hostile.dot").read_text(encoding="utf-8")
    check_text(dot.replace("\t", " "))
    # Outside of quoted strings there is nothing of the user's.
    outside = "".join(part for number, part in enumerate(dot.replace('\\"', "").split('"')) if number % 2 == 0)
    assert "URL" not in outside
    assert "evil" not in outside
