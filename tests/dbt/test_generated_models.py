"""generate_model: the model that it prints builds, and its yml tests it."""

from __future__ import annotations

import pytest
from damage import operation
from lab import Lab

pytestmark = pytest.mark.slow
CRM = """select * from values (1, date '2024-01-01', 'Ann', 'ann@old'), (1, date '2024-03-01', 'Ann', 'ann@new')
as rows (customer_id, updated_at, customer_name, email)"""
ERP = "select * from values (1, timestamp '2024-02-01', 500, 'U') as rows (cust_no, changed_at, credit_limit, op)"


def test_the_printed_model_builds(lab: Lab) -> None:
    for name, sql in {"stg_crm": CRM, "stg_erp": ERP}.items():
        (lab.home / "models").mkdir(exist_ok=True)
        (lab.home / "models" / f"{name}.sql").write_text(sql)
    lab.dbt("run")
    lines = operation(lab, "generate_model", sources=["stg_crm", "stg_erp"], key="customer_id")
    start, middle = lines.index("-- models/dim_customer.sql"), lines.index("# models/dim_customer.yml")
    end = lines.index("      - healing_tables.temporal_integrity") + 1
    assert any("it has no column customer_id: is cust_no the same?" in line for line in lines)
    (lab.home / "models" / "dim_customer.sql").write_text("\n".join(lines[start:middle]))
    (lab.home / "models" / "dim_customer.yml").write_text("\n".join(lines[middle:end]))
    results = lab.dbt("build", "--select", "dim_customer")
    assert {status for status, _ in results.values()} <= {"success", "pass"}, results
    shown = [[str(cell) for cell in row] for row in lab.rows("dim_customer", "email", "credit_limit", "valid_from")]
    assert shown == [
        ["ann@new", "500", "2024-03-01 00:00:00"],
        ["ann@old", "500", "2024-02-01 00:00:00"],
        ["ann@old", "None", "2024-01-01 00:00:00"],
    ]


def test_without_a_key(lab: Lab) -> None:
    lines = operation(lab, "generate_model", sources=["stg_crm"])
    assert any("candidates: customer_id" in line for line in lines), lines
