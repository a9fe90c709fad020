"""Records of a text file that are not those of a table, and the findings that follow."""

from __future__ import annotations

from dpsynth.inspection.findings import (
    BLANK,
    SEVERAL,
    SWALLOWED,
    TABLE,
    Finding,
    Level,
    share_text,
)
from dpsynth.tables.records import HEADERS, JOINED, LONG, QUOTES, SHORT, Lines, RecordLog

_STOPS = "; a fit stops"


def record_findings(log: RecordLog, footer: int = 0) -> list[Finding]:
    """List what is wrong with the records of a file, each with its first line and no cell.

    Args:
        log: of the records.
        footer: the line of the first row of those at the end that are unlike all others, and not
            records of patients; 0 for none.
    """
    return [*_irregular(log, footer or log.last_regular + 1), *_of_cells(log)]


def _irregular(log: RecordLog, footer: int) -> list[Finding]:
    words = {
        SHORT: ("have fewer fields than the header", _short(log, footer)),
        LONG: ("have more fields than the header", _long(log)),
        QUOTES: (
            "have quotes that match no record",
            "a quote that is opened and never closed, or one in the middle of a quoted cell? Let "
            "the source write a quote in a cell twice; or, if it puts no cell between quotes, set "
            'at the end of the schema: dpsynth: {dialect: {quote: ""}}',
        ),
        HEADERS: (
            "repeat the header",
            "leave out the header of all files but the first when you join files",
        ),
        JOINED: (
            "begin with a byte order mark, as a file does",
            "join files without their byte order marks, and without the headers of all but the "
            "first",
        ),
    }
    return [
        _finding(kind, Level.SERIOUS, log.irregular[kind], log.records, what + _STOPS, remedy)
        for kind, (what, remedy) in words.items()
        if log.irregular[kind].count
    ]


def _of_cells(log: RecordLog) -> list[Finding]:
    found = []
    if log.swallowed.count:
        found.append(
            _finding(
                SWALLOWED,
                Level.SERIOUS,
                log.swallowed,
                log.lines,
                "stand between two quotes in one cell and look like records of their own; a fit "
                "does not see these records",
                "a quote that is opened and not closed where its cell ends? Let the source write a "
                "quote in a cell twice; or, if it puts no cell between quotes, set at the end of "
                'the schema: dpsynth: {dialect: {quote: ""}}',
            )
        )
    if log.several.count:
        found.append(
            _finding(
                SEVERAL,
                Level.NOTE,
                log.several,
                log.records,
                "have a cell that spans several lines",
                "nothing is to be done if a column of notes holds line breaks",
            )
        )
    if log.blank.count:
        found.append(
            _finding(
                BLANK,
                Level.NOTE,
                log.blank,
                log.lines,
                "are blank, between records; a fit leaves them out",
                "is a part of the extract lost there, or a page break? If not, nothing is to be "
                "done",
            )
        )
    return found


def _short(log: RecordLog, footer: int) -> str:
    short = log.irregular[SHORT]
    if log.lacking_last == short.count:
        return (
            f"the header ends in a separator, so column {log.width} has no name, and the records "
            "do not: let the source write both alike"
        )
    if short.first >= footer > 1:
        remove = "a footer, such as a total or a number of rows? Remove"
        if not log.begun.count:
            return f"{remove} {'this line' if short.count == 1 else 'these lines'} at the end"
        cut = f"line {log.begun.first:,} begins as a record and is not complete"
        if log.begun.count == short.count == 1:
            return f"{cut}: is the file cut off there? Export or copy it again"
        return f"{cut}: is the file cut off there? Export or copy it again. Or {remove} these lines"
    for sign, count in log.other_separator.items():
        if 2 * count > log.irregular[SHORT].count:
            return f"they have {sign!r} as separator: let the source write one separator"
    return (
        "a line break inside a cell without quotes? Let the source write such cells between "
        "quotes; if it leaves out empty cells at the end of a line, let it write every separator"
    )


def _long(log: RecordLog) -> str:
    if log.trailing == log.irregular[LONG].count:
        return "they end in a separator, and the header does not: let the source write both alike"
    return (
        "a separator inside a cell without quotes, such as a decimal comma? Let the source write "
        "such cells between quotes, or use another separator and declare it"
    )


def _finding(
    kind: str, level: Level, lines: Lines, total: int, message: str, remedy: str
) -> Finding:
    what, semicolon, effect = message.partition(";")
    first = f"{what} (first: line {lines.first:,})"
    return Finding(
        TABLE,
        kind,
        level,
        f"{share_text(lines.count, total, 'line')} {first}{semicolon}{effect}",
        lines.count,
        total,
        remedy,
    )
