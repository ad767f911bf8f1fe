"""Finds event logs of Spark and reads their lines: plain files, rolling ones, compressed ones.

Sources: Spark's `EventLogFileWriters`, whose names of files these are, and `CompressionCodec`. A codec is told by the
first bytes of a file, not by its name. Frames are those of Zstandard and gzip, of `LZ4BlockOutputStream` (lz4-java) and
of `SnappyOutputStream` (xerial); pyarrow decompresses what is in them.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from flinkmagic.errors.history import LogCodecError, NoEventLogError, UnreadableLogError

ROLLING = "eventlog_v2_"
"""How the folder of a log in several files begins."""
LONGEST_LINE = 32 << 20
"""A longer line is no event that one could read within the memory that a log may take; it is left out."""

_PART = re.compile(r"events_(\d+)_")
_COMPACT = ".compact"
_CHUNK = 1 << 20
_LARGEST_BLOCK = 64 << 20
"""Spark's own blocks have 32 KiB; a larger one than this is no block."""


@dataclass
class EventLog:
    """The files of one application's log, in the order in which they were written."""

    name: str
    files: list[Path]
    notes: list[str] = field(default_factory=list)
    """What could not be read, filled while it is."""

    @property
    def is_compacted(self) -> bool:
        """Whether Spark has left events of earlier jobs out."""
        return any(path.name.endswith(_COMPACT) for path in self.files)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, as far as the files go.

        Raises
        ------
        LogCodecError
            If a file is compressed in a way that cannot be read here.
        """
        for path in self.files:
            with path.open("rb") as file:
                blocks = _Blocks(_blocks_of(path, file))
                yield from self._lines_of(path, io.BufferedReader(blocks, _CHUNK))
                if blocks.broken is not None:
                    self.notes.append(f"{path.name} is cut off, or broken: it is read as far as it goes")

    def _lines_of(self, path: Path, reader: io.BufferedReader) -> Iterator[bytes]:
        too_long = False
        while line := reader.readline(LONGEST_LINE):
            is_whole = line.endswith(b"\n")
            if too_long or (not is_whole and len(line) == LONGEST_LINE):
                if not too_long:
                    self.notes.append(f"{path.name}: a line of more than {LONGEST_LINE >> 20} MiB is left out")
                too_long = not is_whole
            else:
                yield line


def find_logs(path: Path) -> list[EventLog]:
    """Return the logs of a file or folder, by name; a folder may be a log in several files, or hold logs.

    Raises
    ------
    NoEventLogError
        If there is none.
    UnreadableLogError
        If it cannot be read.
    """
    try:
        if path.is_dir():
            inside = sorted(path.iterdir())
            own = _parts(inside)
            found = [EventLog(path.name, own)] if own else [log for one in inside for log in _log_of(one)]
        else:
            with path.open("rb"):
                found = [EventLog(path.name, [path])]
    except OSError as error:
        raise UnreadableLogError(path, error.strerror) from None
    if not found:
        raise NoEventLogError(path)
    return found


def _log_of(path: Path) -> list[EventLog]:
    if path.is_dir():
        parts = _parts(sorted(path.iterdir())) if path.name.startswith(ROLLING) else []
        return [EventLog(path.name, parts)] if parts else []
    return [EventLog(path.name, [path])] if path.is_file() and _begins_like_a_log(path) else []


def _begins_like_a_log(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            return next(_blocks_of(path, file), b"").lstrip().startswith(b'{"Event"')
        except (LogCodecError, *_BROKEN):
            return False


def _parts(inside: list[Path]) -> list[Path]:
    """Return the files of a rolling log in their order; a compacted one stands for itself and all before it."""
    numbered = {path: int(found[1]) for path in inside if (found := _PART.match(path.name)) and path.is_file()}
    compacted = max((number for path, number in numbered.items() if path.name.endswith(_COMPACT)), default=-1)
    kept = [
        path
        for path, number in numbered.items()
        if number > compacted or (number == compacted and path.name.endswith(_COMPACT))
    ]
    return sorted(kept, key=lambda path: numbered[path])


class _Blocks(io.RawIOBase):
    """Reads blocks as one stream, which ends where they are broken."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")
        self.broken: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            try:
                block = next(self._blocks, None)
            except _BROKEN as error:
                self.broken, block = error, None
            if block is None:
                return 0
            self._rest = memoryview(block)
        length = min(len(buffer), len(self._rest))
        buffer[:length] = self._rest[:length]
        self._rest = self._rest[length:]
        return length


class _CutOffError(Exception):
    """A block that is not whole."""


_BROKEN = (_CutOffError, OSError, EOFError, ValueError, zlib.error, struct.error)
"""What decompressors raise: pyarrow's errors are OSError and ValueError."""


def _blocks_of(path: Path, file: BinaryIO) -> Iterator[bytes]:
    head = file.read(16)
    file.seek(0)
    for magic, codec, blocks in _CODECS:
        if head.startswith(magic):
            return blocks(path, codec, file)
    return iter(lambda: file.read(_CHUNK), b"")


def _zstandard(path: Path, codec: str, file: BinaryIO) -> Iterator[bytes]:
    stream = _pyarrow(path, codec).CompressedInputStream(file, "zstd")
    return iter(lambda: stream.read(_CHUNK), b"")


def _gzip(path: Path, codec: str, file: BinaryIO) -> Iterator[bytes]:
    stream = gzip.GzipFile(fileobj=file)
    return iter(lambda: stream.read(_CHUNK), b"")


def _lz4_blocks(path: Path, codec: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks of `LZ4BlockOutputStream`: magic, method, both lengths, checksum, data."""
    lz4 = _pyarrow(path, codec).Codec("lz4_raw")
    while header := file.read(21):
        magic, method, packed, length, _ = struct.unpack("<8sBiii", header)
        if magic != _LZ4 or not 0 <= length <= _LARGEST_BLOCK or not 0 <= packed <= _LARGEST_BLOCK:
            raise _CutOffError
        data = _exactly(file, packed)
        if length:
            is_stored = method & 0xF0 == 0x10
            yield data if is_stored else lz4.decompress(data, decompressed_size=length, asbytes=True)


def _snappy_blocks(path: Path, codec: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks of `SnappyOutputStream`: a header of 16 bytes, then length and data of each."""
    snappy = _pyarrow(path, codec).Codec("snappy")
    file.read(16)
    while header := file.read(4):
        (packed,) = struct.unpack(">i", header)
        if header == _SNAPPY[:4]:  # a stream that was appended
            file.read(12)
            continue
        if not 0 <= packed <= _LARGEST_BLOCK:
            raise _CutOffError
        data = _exactly(file, packed)
        length = _varint(data)
        if length > _LARGEST_BLOCK:
            raise _CutOffError
        yield snappy.decompress(data, decompressed_size=length, asbytes=True)


def _lzf(path: Path, codec: str, file: BinaryIO) -> Iterator[bytes]:
    raise LogCodecError(path, codec, "Set spark.eventLog.compression.codec to zstd, or decompress it.")


_LZ4 = b"LZ4Block"
_SNAPPY = b"\x82SNAPPY\x00"
_CODECS: tuple[tuple[bytes, str, Callable[[Path, str, BinaryIO], Iterator[bytes]]], ...] = (
    (b"\x28\xb5\x2f\xfd", "zstd", _zstandard),
    (_LZ4, "lz4", _lz4_blocks),
    (_SNAPPY, "snappy", _snappy_blocks),
    (b"\x1f\x8b", "gzip", _gzip),
    (b"ZV", "lzf", _lzf),
)


def _pyarrow(path: Path, codec: str) -> ModuleType:
    try:
        import pyarrow
    except ImportError:
        raise LogCodecError(path, codec, "Reading it needs pyarrow: pip install pyarrow") from None
    return pyarrow


def _exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise _CutOffError
    return data


def _varint(data: bytes) -> int:
    """Return the length that a block of Snappy begins with."""
    value = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value
    raise _CutOffError
