"""Real PDF files: statements of account, several pages of text in a font that every reader has.

A small part of PDF 1.4, which is all that text needs:

    %PDF-1.4        then the objects, each "n 0 obj … endobj": catalogue, list of pages, font; each page and its text
    xref            where each object begins, in bytes
    trailer         how many objects there are, and which one is the catalogue
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

LINES_A_PAGE: Final = 50
A4: Final = (595, 842)
LEADING: Final = 15


def write(path: Path, lines: Sequence[str]) -> int:
    """Write a document with these lines, and return how many pages it has."""
    pages = [lines[first : first + LINES_A_PAGE] for first in range(0, len(lines), LINES_A_PAGE)] or [[]]
    # Written beside and renamed, so that a process killed while it writes leaves no half a document.
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(_file([*_head(len(pages)), *_body(pages)]))
    beside.replace(path)
    return len(pages)


def _head(pages: int) -> Iterator[bytes]:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(pages))
    yield b"<< /Type /Catalog /Pages 2 0 R >>"
    yield b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages)
    yield b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def _body(pages: Sequence[Sequence[str]]) -> Iterator[bytes]:
    for number, lines in enumerate(pages):
        size, fonts = b"[0 0 %d %d]" % A4, b"<< /Font << /F1 3 0 R >> >>"
        where = 5 + 2 * number
        yield b"<< /Type /Page /Parent 2 0 R /MediaBox %b /Contents %d 0 R /Resources %b >>" % (size, where, fonts)
        text = zlib.compress(_text(lines))
        yield b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(text), text)


def _text(lines: Sequence[str]) -> bytes:
    shown = b"\n".join(b"(%b) Tj T*" % _escaped(line) for line in lines)
    return b"BT /F1 10 Tf %d TL 50 %d Td\n%b\nET" % (LEADING, A4[1] - 60, shown)


def _escaped(line: str) -> bytes:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252", "replace")


def _file(objects: Sequence[bytes]) -> bytes:
    written, begins = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, content in enumerate(objects, start=1):
        begins.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % begin for begin in begins)
    last = len(written)
    count = len(objects) + 1
    written += b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table)
    written += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, last)
    return bytes(written)
