"""Names as people mistype them, with the option that is meant, or None. Two methods find it, one in SQL's half."""

OPTIONS = (
    "key_columns",
    "attributes",
    "changed_at",
    "full_batch",
    "surrogate_key",
    "valid_to_current",
    "on_tie",
    "audit",
)
NEAR = {
    "key_column": "key_columns",
    "keycolumns": "key_columns",
    "atributes": "attributes",
    "Attributes": "attributes",
    "change_at": "changed_at",
    "surogate_key": "surrogate_key",
    "full_batches": "full_batch",
    "valid_to_curent": "valid_to_current",
    "on_ties": "on_tie",
    "audti": "audit",
    "scd_type": None,
    "x": None,
    "": None,
}
