"""Fragments of Spark SQL: identifiers, literals, types, instants, hashes."""
