"""What a dimension is made of: the specification that a user writes, and the columns that follow from it."""
