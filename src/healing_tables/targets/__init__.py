"""The tables that a plan can be applied to."""
