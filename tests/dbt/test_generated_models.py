"""generate_model: the model that it prints builds, and its yml tests it."""

from __future__ import annotations

import pytest
import yaml
from damage import operation
from lab import Lab

pytestmark = pytest.mark.slow
CRM = """select * from values (1, date '2024-01-01', 'Ann', 'ann@old'), (1, date '2024-03-01', 'Ann', 'ann@new')
as rows (customer_id, updated_at, customer_name, email)"""
ERP = "select * from values (1, timestamp '2024-02-01', 500, 'U') as rows (cust_no, changed_at, credit_limit, op)"


@pytest.fixture(scope="module")
def printed(lab: Lab) -> list[str]:
    """What generate_model prints, written to the files that it names."""
    for name, sql in {"stg_crm": CRM, "stg_erp": ERP}.items():
        lab.write(f"models/{name}.sql", sql)
    lab.dbt("run")
    lines = operation(lab, "generate_model", sources=["stg_crm", "stg_erp"], key="customer_id")
    start, middle = lines.index("-- models/dim_customer.sql"), lines.index("# models/dim_customer.yml")
    lab.write("models/dim_customer.sql", "\n".join(lines[start:middle]))
    lab.write("models/dim_customer.yml", yml_in(lines[middle:]))
    return lines


def yml_in(lines: list[str]) -> str:
    return "\n".join(lines[lines.index("version: 2") : lines.index("      - healing_tables.temporal_integrity") + 1])


def test_the_printed_model_builds(lab: Lab, printed: list[str]) -> None:
    assert any("it has no column customer_id: is cust_no the same?" in line for line in printed)
    results = lab.dbt("build", "--select", "dim_customer")
    assert {status for status, _ in results.values()} <= {"success", "pass"}, results
    shown = [[str(cell) for cell in row] for row in lab.rows("dim_customer", "email", "credit_limit", "valid_from")]
    assert shown == [
        ["ann@new", "500", "2024-03-01 00:00:00"],
        ["ann@old", "500", "2024-02-01 00:00:00"],
        ["ann@old", "None", "2024-01-01 00:00:00"],
    ]


@pytest.mark.usefixtures("printed")
def test_the_lineage_goes_to_the_catalog(lab: Lab) -> None:
    """generate_yml of the printed model, as its yml; persist_docs writes the descriptions to the table."""
    lab.write("models/dim_customer.yml", yml_in(operation(lab, "generate_yml", dimension="dim_customer")))
    persisted = "persist_docs={'relation': true, 'columns': true}"
    model = lab.home / "models" / "dim_customer.sql"
    model.write_text(model.read_text().replace("unique_key=", f"{persisted}, unique_key="))
    results = lab.dbt("build", "--select", "dim_customer", "--full-refresh")
    assert {status for status, _ in results.values()} <= {"success", "pass"}, results
    comments = {
        row["col_name"]: row["comment"] for row in lab.spark.sql(f"describe {lab.schema}.dim_customer").collect()
    }
    assert comments["customer_id"] == "The business key."
    assert comments["email"] == "From crm. Type 2: the value at that time."
    assert comments["credit_limit"] == "From erp. Type 2: the value at that time."
    assert comments["valid_from"].startswith("The moment from which the version is valid")


@pytest.mark.usefixtures("printed")
def test_what_is_generated_can_be_redirected_or_written(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is, also with --quiet: a redirected output is the file."""
    capsys.readouterr()
    operation(lab, "generate_yml", "--quiet", dimension="dim_customer")
    shown = capsys.readouterr().out
    assert shown.startswith("version: 2\nmodels:\n  - name: dim_customer\n")
    file = lab.home / "generated.yml"
    operation(lab, "generate_yml", dimension="dim_customer", file=str(file))
    assert file.read_text().rstrip() == shown.rstrip()
    columns = {column["name"]: column for column in yaml.safe_load(shown)["models"][0]["columns"]}
    assert {name: (column.get("data_type"), column.get("data_tests")) for name, column in columns.items()} == {
        "customer_id": ("int", ["not_null"]),
        "customer_name": ("string", None),
        "email": ("string", None),
        "credit_limit": ("int", None),
        "valid_from": ("timestamp", ["not_null"]),
        "valid_to": ("timestamp", None),
        "is_current": ("boolean", ["not_null"]),
        "version": ("int", None),
        "compressed_row_count": ("bigint", None),
        "key_hash": ("string", None),
        "row_hash": ("string", None),
    }
    lines = operation(
        lab, "generate_model", sources=["stg_crm"], key="customer_id", file=str(lab.home / "no" / "x.sql")
    )
    assert any("wanted: file: a file in a folder that exists" in line for line in lines), lines


@pytest.mark.usefixtures("printed")
def test_without_a_key(lab: Lab) -> None:
    lines = operation(lab, "generate_model", sources=["stg_crm"])
    assert any("candidates: customer_id" in line for line in lines), lines
