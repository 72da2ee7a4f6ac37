"""Rows of tools for change data capture, made by hand, and what their readers make of them. SQL and Python both follow
it."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class ReaderExample:
    """Rows of a tool, and the rows of its reader: moment and sequence as texts.

    Attributes:
        ddl: of the tool's rows; row_ddl: of the columns that stay.
        arguments: of the macro and of the function alike.
        expected: columns of the row, then ``_changed_at``, ``_sequence``, ``_is_deleted``.
    """

    reader: str
    ddl: str
    row_ddl: str
    rows: list[tuple[Any, ...]]
    expected: list[tuple[Any, ...]]
    arguments: dict[str, Any] = field(default_factory=dict)


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, day, hour, minute, second, micros, dt.timezone.utc)


def message(**members: Any) -> tuple[str]:
    """A row with a message in JSON."""
    return (json.dumps({"table": "SHOP.CUSTOMERS", **members}),)


def position(lsn: int, moment: str, part: int) -> str:
    """The sequence of a message of PostgreSQL: it has no positions of other databases."""
    return f"{{{lsn}, {', '.join(['null'] * 8)}, {part}, {moment}}}"


ROW_OF_DEBEZIUM = (
    "id int, city string, born date, seen timestamp, price decimal(10,2), big decimal(38,0), raw binary, "
    "tags array<string>"
)
EXAMPLES = {
    "delta": ReaderExample(
        "delta_changes",
        "id int, city string, _change_type string, _commit_version bigint, _commit_timestamp timestamp",
        "id int, city string",
        [
            (1, "Oslo", "insert", 1, at(1)),
            (1, "Oslo", "update_preimage", 2, at(2)),
            (2, "Oslo", "update_postimage", 2, at(2)),  # the key has changed
            (2, "Oslo", "delete", 3, at(3)),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{1, 1}", False),
            (1, "Oslo", "2024-01-02 00:00:00", "{2, 0}", True),
            (2, "Oslo", "2024-01-02 00:00:00", "{2, 1}", False),
            (2, "Oslo", "2024-01-03 00:00:00", "{3, 0}", True),
        ],
    ),
    "fivetran": ReaderExample(
        "fivetran",
        "id int, city string, _fivetran_start timestamp, _fivetran_end timestamp, _fivetran_active boolean, "
        "_fivetran_synced timestamp",
        "id int, city string",
        [
            (1, "Oslo", at(1), at(2, 23, 59, 59, 999000), False, at(9)),
            (1, "Rome", at(3), dt.datetime(9999, 12, 31, 23, 59, 59, 999000, dt.timezone.utc), True, at(9)),
            (2, "Bonn", at(1, 12), at(1, 12, 0, 0, 499000), False, at(9)),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{2024-01-01 00:00:00, 1}", False),
            (1, "Oslo", "2024-01-03 00:00:00", "{2024-01-03 00:00:00, 0}", True),
            (1, "Rome", "2024-01-03 00:00:00", "{2024-01-03 00:00:00, 1}", False),
            (2, "Bonn", "2024-01-01 12:00:00", "{2024-01-01 12:00:00, 1}", False),
            (2, "Bonn", "2024-01-01 12:00:00.5", "{2024-01-01 12:00:00.5, 0}", True),
        ],
    ),
    "airbyte of PostgreSQL": ReaderExample(
        "airbyte",
        "_airbyte_raw_id string, _airbyte_extracted_at timestamp, _airbyte_meta string, id int, city string, "
        "_ab_cdc_lsn bigint, _ab_cdc_updated_at string, _ab_cdc_deleted_at string",
        "id int, city string",
        [
            ("a", at(5), "{}", 1, "Oslo", 100, "2024-01-01T00:00:00Z", None),
            ("b", at(5), "{}", 1, None, 200, "2024-01-02T01:00:00+01:00", "2024-01-02T00:00:00Z"),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{100, 2024-01-05 00:00:00}", False),
            (1, None, "2024-01-02 00:00:00", "{200, 2024-01-05 00:00:00}", True),
        ],
    ),
    "airbyte with a cursor": ReaderExample(
        "airbyte",
        "_airbyte_raw_id string, _airbyte_extracted_at timestamp, id int, updated_at timestamp",
        "id int, updated_at timestamp",
        [("a", at(5), 1, at(1)), ("b", at(6), 1, at(1))],
        [
            (1, at(1), "2024-01-01 00:00:00", "{2024-01-01 00:00:00, 2024-01-05 00:00:00}", False),
            (1, at(1), "2024-01-01 00:00:00", "{2024-01-01 00:00:00, 2024-01-06 00:00:00}", False),
        ],
        {"changed_at": "updated_at"},
    ),
    "dms": ReaderExample(
        "dms",
        "Op string, ts timestamp, id int, city string",
        "id int, city string",
        [
            (None, at(1), 1, "Oslo"),
            ("I", at(1), 1, "Rome"),
            ("u ", at(2), 1, "Bonn"),
            ("D", at(3), 1, None),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{2024-01-01 00:00:00, 0}", False),
            (1, "Rome", "2024-01-01 00:00:00", "{2024-01-01 00:00:00, 1}", False),
            (1, "Bonn", "2024-01-02 00:00:00", "{2024-01-02 00:00:00, 1}", False),
            (1, None, "2024-01-03 00:00:00", "{2024-01-03 00:00:00, 1}", True),
        ],
        {"changed_at": "ts"},
    ),
    "dms with a changed key": ReaderExample(
        "dms",
        "Op string, ts timestamp, seq string, id int, city string, BI_id int, BI_city string",
        "id int, city string",
        [
            ("I", at(1), "001", 1, "Oslo", None, None),
            ("U", at(2), "002", 2, "Oslo", 1, "Oslo"),
            ("U", at(3), "003", 2, "Rome", 2, "Oslo"),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{001, 2}", False),
            (1, "Oslo", "2024-01-02 00:00:00", "{002, 1}", True),
            (2, "Oslo", "2024-01-02 00:00:00", "{002, 2}", False),
            (2, "Rome", "2024-01-03 00:00:00", "{003, 2}", False),
        ],
        {"changed_at": "ts", "sequence": ["seq"], "key_columns": ["id"]},
    ),
    "goldengate": ReaderExample(
        "goldengate",
        "message string",
        "id int, city string",
        [
            message(op_type="I", op_ts="2024-01-01 00:00:00.000000", pos="01", after={"id": 1, "city": "Oslo"}),
            message(
                op_type="U",
                op_ts="2024-01-02 00:00:00.500000",
                pos="02",
                before={"id": 1, "city": "Oslo"},
                after={"id": 2, "city": "Rome"},
            ),
            message(op_type="D", op_ts="2024-01-03 00:00:00.000000", pos="03", before={"id": 2}),
            message(op_type="T", op_ts="2024-01-04 00:00:00.000000", pos="04"),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{01, 1}", False, False),
            (1, "Oslo", "2024-01-02 00:00:00.5", "{02, 0}", True, False),
            (2, "Rome", "2024-01-02 00:00:00.5", "{02, 1}", False, False),
            (2, None, "2024-01-03 00:00:00", "{03, 1}", True, False),
            (None, None, "2024-01-04 00:00:00", "{04, 1}", False, True),
        ],
        {"payload": "message", "schema": "id int, city string", "key_columns": ["id"]},
    ),
    "debezium in JSON": ReaderExample(
        "debezium",
        "value string",
        ROW_OF_DEBEZIUM,
        [
            message(
                op="r",
                source={"ts_ms": 1704067200000, "lsn": 10, "snapshot": "true"},
                after={
                    "id": 1,
                    "city": "Oslo",
                    "born": 19723,
                    "seen": 1704067200000001,
                    "price": "ANw=",  # 220
                    "big": "/zxqNEU=",
                    "raw": "AP8=",
                    "tags": ["a", None],
                },
            ),
            # with its schema, as the JSON converter writes it by default
            message(
                schema={"type": "struct"},
                payload={
                    "op": "u",
                    "source": {"ts_ms": 1704153600000, "ts_us": 1704153600000007, "lsn": 20},
                    "before": None,
                    "after": {
                        "id": 1,
                        "city": "__debezium_unavailable_value",
                        "price": "/w==",
                        "seen": "2024-01-02T00:00:00Z",
                    },
                    "ts_ms": 1,
                },
            ),
            message(op="d", source={"ts_ms": 1704240000000, "lsn": 30}, before={"id": 1}),
            message(op="t", source={"ts_ms": 1704326400000, "lsn": 40}),
            message(op="m", source={"ts_ms": 1704326400000, "lsn": 41}),
            message(ts_ms=5),
            (None,),
        ],
        [
            (
                *(1, "Oslo", dt.date(2024, 1, 1), at(1, micros=1), Decimal("2.20"), Decimal(-3281374139)),
                *(bytearray(b"\x00\xff"), ["a", None]),
                *("2024-01-01 00:00:00", position(10, "2024-01-01 00:00:00", 0), False, False),
            ),
            (
                *(1, "__debezium_unavailable_value", None, at(2), Decimal("-0.01"), None, None, None),
                *("2024-01-02 00:00:00.000007", position(20, "2024-01-02 00:00:00.000007", 1), False, False),
            ),
            (
                *(1, None, None, None, None, None, None, None),
                *("2024-01-03 00:00:00", position(30, "2024-01-03 00:00:00", 1), True, False),
            ),
            (
                *(None, None, None, None, None, None, None, None),
                *("2024-01-04 00:00:00", position(40, "2024-01-04 00:00:00", 1), False, True),
            ),
        ],
        {
            "payload": "value",
            "schema": ROW_OF_DEBEZIUM,
        },
    ),
    "debezium in columns": ReaderExample(
        "debezium",
        "op string, ts_ms bigint, before struct<id: int, city: string>, after struct<id: int, city: string>, "
        "source struct<ts_ms: bigint, file: string, pos: bigint>",
        "id int, city string",
        [
            ("c", 9, None, (1, "Oslo"), (1704067200000, "bin.1", 7)),
            ("d", 9, (1, "Oslo"), None, (1704153600000, "bin.2", 3)),
        ],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{bin.1, 7, null, 1, 2024-01-01 00:00:00}", False, False),
            (1, "Oslo", "2024-01-02 00:00:00", "{bin.2, 3, null, 1, 2024-01-02 00:00:00}", True, False),
        ],
    ),
    "debezium flattened": ReaderExample(
        "debezium",
        "id int, city string, __op string, __deleted string, __lsn bigint, __source_ts_ms bigint",
        "id int, city string",
        [(1, "Oslo", "r", "false", 5, 1704067200000), (1, "Oslo", "d", "true", 6, 1704153600000)],
        [
            (1, "Oslo", "2024-01-01 00:00:00", "{5, null, 0, 2024-01-01 00:00:00}", False, False),
            (1, "Oslo", "2024-01-02 00:00:00", "{6, null, 1, 2024-01-02 00:00:00}", True, False),
        ],
    ),
    "debezium without positions": ReaderExample(
        "debezium",
        "op string, source struct<ts_ms: bigint, lsn: bigint>, before struct<id: int>, after struct<id: int>",
        "id int",
        [("r", (1704153600000, None), None, (1,)), ("c", (1704067200000, None), None, (1,))],
        [
            (1, "2024-01-01 00:00:00", "{null, 2024-01-01 00:00:00, 1, 2024-01-01 00:00:00}", False, False),
            (1, "2024-01-02 00:00:00", "{null, 2024-01-02 00:00:00, 0, 2024-01-02 00:00:00}", False, False),
        ],
    ),
}
