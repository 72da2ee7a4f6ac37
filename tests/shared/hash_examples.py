"""Values with the text that hashes make of them: column to Spark type, SQL, text. SQL and Python both follow it."""

HASHED = {
    "text": ("string", "'a|b^c\\\\d'", r"a\|b\^c\\d"),
    "nothing": ("string", "cast(null as string)", "^^NULL^^"),
    "mark": ("string", "'^^NULL^^'", r"\^\^NULL\^\^"),
    "yes": ("boolean", "true", "true"),
    "whole": ("bigint", "-12", "-12"),
    "exact": ("decimal(38,18)", "cast(0 as decimal(38,18))", "0.000000000000000000"),
    "tiny": ("decimal(20,12)", "cast('-0.000000000120' as decimal(20,12))", "-0.000000000120"),
    "price": ("decimal(10,2)", "cast(1.5 as decimal(10,2))", "1.50"),
    "zero": ("double", "cast('-0.0' as double)", "0.0"),
    "nan": ("double", "cast('NaN' as double)", "NaN"),
    "day": ("date", "date '1789-03-04'", "1789-03-04"),
    "instant": ("timestamp", "timestamp '2024-03-10 02:30:00.120000Z'", "2024-03-10 02:30:00.12"),
    "local": ("timestamp_ntz", "timestamp_ntz '2024-03-10 02:30:00'", "2024-03-10 02:30:00"),
    "bytes": ("binary", "X'00FF'", "00ff"),
    "list_of_zeros": (
        "array<double>",
        "array(cast('-0.0' as double), null, 1.5d)",
        "[0.0,null,1.5]",
    ),
    "list": ("array<int>", "array(1, null, 3)", "[1,null,3]"),
    "deep": (
        "struct<a b:array<struct<x:double>>,n:float>",
        "named_struct('a b', array(named_struct('x', cast('-0.0' as double))), 'n', cast('-0.0' as float))",
        r'{"a b":[{"x":0.0}],"n":0.0}',
    ),
    "when": (
        "struct<at:timestamp>",
        "named_struct('at', timestamp '2024-03-10 02:30:00.123456Z')",
        r'{"at":"2024-03-10T02:30:00.123456Z"}',
    ),
    "pair": ("struct<a:int,b:string>", "named_struct('a', 1, 'b', 'x|y')", r'{"a":1,"b":"x\|y"}'),
}
