"""The pure half of a merge: DataFrames in, row changes out; nothing is read but its arguments, nothing is written."""
