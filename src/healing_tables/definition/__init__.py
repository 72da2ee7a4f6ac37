"""The definition of a dimension: the specification of the user, and the columns that follow from it."""
