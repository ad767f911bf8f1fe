"""Event logs are found, and read line by line, in whatever way Spark has written them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from flinkmagic.errors.history import LogCodecError, NoEventLogError, UnreadableLogError
from flinkmagic.history import event_files
from flinkmagic.history.event_files import EventLog, find_logs

LINES = [b'{"Event":"Some","number":%d,"text":"%s"}\n' % (number, b"abc" * (number % 50)) for number in range(20_000)]


def compressed(spark, path: Path, codec: str) -> Path:
    """Written by Spark's own codec."""
    jvm = spark.sparkContext._jvm
    made = jvm.org.apache.spark.io.CompressionCodec.createCodec(spark.sparkContext._jsc.sc().getConf(), codec)
    stream = made.compressedOutputStream(jvm.java.io.FileOutputStream(str(path)))
    stream.write(b"".join(LINES))
    stream.close()
    return path


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
def test_what_sparks_codecs_write_is_read_whole_and_as_far_as_it_goes(spark, tmp_path, codec):
    path = compressed(spark, tmp_path / f"app-1.{codec}", codec)
    (log,) = find_logs(path)
    assert list(log.lines()) == LINES
    assert log.notes == []
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    (log,) = find_logs(path)
    read = list(log.lines())
    assert 0 < len(read) < len(LINES)
    assert read[:-1] == LINES[: len(read) - 1]
    assert LINES[len(read) - 1].startswith(read[-1])
    assert log.notes == [f"app-1.{codec} is cut off, or broken: it is read as far as it goes"]


def test_a_codec_that_nothing_here_reads_is_named(spark, tmp_path):
    path = compressed(spark, tmp_path / "app-1", "lzf")
    with pytest.raises(LogCodecError, match=r"app-1 is compressed with lzf\. Set spark\.eventLog\.compression\.codec"):
        list(EventLog("one", [path]).lines())


def test_without_pyarrow_a_compressed_log_says_what_to_install(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "one").write_bytes(b"\x28\xb5\x2f\xfd0000")
    with pytest.raises(LogCodecError, match="Reading it needs pyarrow: pip install pyarrow"):
        list(EventLog("one", [tmp_path / "one"]).lines())


def test_broken_blocks_end_a_log_without_harm(tmp_path):
    for head in (b"LZ4Block\x20\xff\xff\xff\x7f\xff\xff\xff\x7f0000", b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\x7f\xff\xff\xff"):
        (tmp_path / "one").write_bytes(head + b"x" * 100)
        (log,) = find_logs(tmp_path / "one")
        assert list(log.lines()) == []
        assert log.notes == ["one is cut off, or broken: it is read as far as it goes"]


def test_rolling_logs_are_read_in_the_order_of_their_numbers(tmp_path):
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for number in (10, 9, 11, 2):
        (folder / f"events_{number}_app-1").write_bytes(b'{"Event":"%d"}\n' % number)
    (folder / "appstatus_app-1.inprogress").touch()
    for path in (folder, tmp_path):
        (log,) = find_logs(path)
        assert [line.strip() for line in log.lines()] == [b'{"Event":"%d"}' % number for number in (2, 9, 10, 11)]
    # A compacted file stands for itself and for all before it.
    (folder / "events_9_app-1.compact").write_bytes(b'{"Event":"compact"}\n')
    (log,) = find_logs(folder)
    assert [file.name for file in log.files] == ["events_9_app-1.compact", "events_10_app-1", "events_11_app-1"]


def test_a_folder_has_the_logs_that_begin_like_one(tmp_path):
    (tmp_path / "app-2.inprogress").write_bytes(LINES[0])
    (tmp_path / "app-1.gz").write_bytes(gzip.compress(LINES[0]))
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "inside").mkdir()
    assert [log.name for log in find_logs(tmp_path)] == ["app-1.gz", "app-2.inprogress"]
    assert list(find_logs(tmp_path)[0].lines()) == LINES[:1]


def test_what_is_no_log_is_refused(tmp_path):
    with pytest.raises(NoEventLogError, match=r"holds no event log of Spark\. It is the file"):
        find_logs(tmp_path)
    with pytest.raises(UnreadableLogError, match="cannot be read: No such file"):
        find_logs(tmp_path / "absent")


def test_a_line_without_an_end_costs_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(event_files, "LONGEST_LINE", 1 << 20)
    (tmp_path / "one").write_bytes(LINES[0] + b'{"' + b"x" * (5 << 20) + b"\n" + LINES[1])
    (log,) = find_logs(tmp_path / "one")
    assert list(log.lines()) == LINES[:2]
    assert log.notes == ["one: a line of more than 1 MiB is left out"]
