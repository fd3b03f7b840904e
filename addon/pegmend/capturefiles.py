"""Appends records to a folder of capture files: one file a day and by size, all of them within a bound."""

import os
import re
from datetime import date
from pathlib import Path

FILE_LIMIT = 64 * 1024 * 1024
"""A file that has reached this size, or a quarter of all there may be, is followed by the next one of the day."""

_NAME = re.compile(r"pegmend-\d{4}-\d\d-\d\d(?:\.\d+)?\.mitm")


class CaptureFiles:
    """The capture files of one folder; other files in it are left alone."""

    def __init__(self, folder: Path, total_limit: int) -> None:
        """`total_limit` bounds the bytes of all capture files together; the oldest ones go first."""
        self.folder = folder
        self.total_limit = total_limit
        self.file_limit = min(FILE_LIMIT, total_limit // 4)
        self._day = date.min
        self._number = 0

    def append(self, record: bytes, today: date) -> Path:
        """Write one record in a single piece and return its file. Raises OSError; no part of it stays then."""
        path = self._path(today)
        if not path.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(len(record))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _write_whole(descriptor, record)
        finally:
            os.close(descriptor)
        return path

    def _path(self, today: date) -> Path:
        if today != self._day:
            self._day, self._number = today, 0
        while True:
            suffix = f".{self._number}" if self._number else ""
            path = self.folder / f"pegmend-{today.isoformat()}{suffix}.mitm"
            if not path.exists() or path.stat().st_size < self.file_limit:
                return path
            self._number += 1

    def _make_room(self, needed: int) -> None:
        """Before a new file is begun, drop old ones until a whole file fits in."""
        files = sorted(
            (path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)),
            key=lambda path: path.stat().st_mtime,
        )
        total = sum(path.stat().st_size for path in files) + needed + self.file_limit
        for path in files:
            if total <= self.total_limit:
                return
            total -= path.stat().st_size
            path.unlink()


def _write_whole(descriptor: int, record: bytes) -> None:
    """Write a record; where the disk is full, take back what was written, so that the file stays readable."""
    before = os.fstat(descriptor).st_size
    view = memoryview(record)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, before)
        raise
