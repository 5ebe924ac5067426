"""Records: schema, metrics, validity, store, verification and rendering. Knows none of the other rooms."""

from rvvbench.record.build import Ran, build_process, build_record, build_row
from rvvbench.record.definitions_table import definitions_table
from rvvbench.record.events import EventsRead, parse_events, read_events
from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json, digest, identity
from rvvbench.record.metrics import DEFINITIONS, Definition, derive_process
from rvvbench.record.render import render_json, render_markdown, render_terminal
from rvvbench.record.schema import (
    CacheState,
    Expected,
    ExpectedLoad,
    Figure,
    Heading,
    Image,
    PackageDifference,
    Process,
    Reason,
    Record,
    Relocked,
    Route,
    Row,
    Target,
    Validity,
)
from rvvbench.record.store import Entry, RecordStore, read_record, to_json
from rvvbench.record.table import comparison_table
from rvvbench.record.table_parts import Table
from rvvbench.record.validity import assess
from rvvbench.record.verify import verify

__all__ = [
    "DEFINITIONS",
    "CacheState",
    "Definition",
    "Entry",
    "EventsRead",
    "Expected",
    "ExpectedLoad",
    "Figure",
    "Finding",
    "Heading",
    "Image",
    "PackageDifference",
    "Process",
    "Ran",
    "Reason",
    "Record",
    "RecordStore",
    "Relocked",
    "Route",
    "Row",
    "Table",
    "Target",
    "Validity",
    "assess",
    "build_process",
    "build_record",
    "build_row",
    "canonical_json",
    "comparison_table",
    "definitions_table",
    "derive_process",
    "digest",
    "identity",
    "parse_events",
    "read_events",
    "read_record",
    "render_json",
    "render_markdown",
    "render_terminal",
    "to_json",
    "verify",
]
