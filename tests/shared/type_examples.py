"""Types of columns: which have no equality, and in which type two compare by value. SQL and Python both follow it."""

# A type, and the one in which Iceberg stores it
IN_ICEBERG = {
    "int": "int",
    "tinyint": "int",
    "smallint": "int",
    "char(3)": "string",
    "varchar(10)": "string",
    "decimal(10,2)": "decimal(10,2)",
    "timestamp_ntz": "timestamp_ntz",
    "array<tinyint>": "array<int>",
    "map<smallint,varchar(2)>": "map<int,string>",
    "struct<smallint:tinyint,char:char(1),a:struct<b:array<smallint>>>": (
        "struct<smallint:int,char:string,a:struct<b:array<int>>>"
    ),
}
# Values of a type, as SQL, that the text of a row gives back
IN_ROW_TEXT = {
    "boolean": ["true", "null"],
    "tinyint": ["-128Y"],
    "bigint": ["9223372036854775807L", "-9223372036854775808L"],
    "decimal(38,18)": ["-0.000000000000000001BD", "12345678901234567890.123456789012345678BD"],
    "decimal(38,0)": ["99999999999999999999999999999999999999BD"],
    "float": ["float('NaN')", "float('0.1')", "float('1.4E-45')", "-float('0.0')"],
    "double": ["double('NaN')", "double('-Infinity')", "0.1D", "4.9E-324D", "1.7976931348623157E308D", "-0.0D"],
    "string": ["''", "' x '", "'null'", "'NaN'", "'\"'", "concat(char(0), char(92), char(10))", "'€𝄞'"],
    "binary": ["X''", "X'00FF10'"],
    "date": ["date'0001-01-01'", "date'9999-12-31'", "cast('-0044-03-15' as date)", "cast('+12345-01-01' as date)"],
    "timestamp": [
        "timestamp'2024-10-27 01:30:00.000001Z'",
        "timestamp'1500-02-28 01:02:03Z'",
        "timestamp'9999-12-31 23:59:59.999999Z'",
    ],
    "timestamp_ntz": ["timestamp_ntz'2024-03-31 02:30:00.000001'", "timestamp_ntz'0001-01-01 00:00:00'"],
    "interval day to second": ["interval '-1 02:03:04.000005' day to second"],
    "array<double>": ["array(double('NaN'), null)", "array()"],
    "struct<a:int,`b c`:struct<timestamp:timestamp>>": [
        "named_struct('a', null, 'b c', named_struct('timestamp', timestamp'2024-01-01 00:00:00.5Z'))",
        "named_struct('a', 1, 'b c', null)",
    ],
    "map<string,int>": ["map('a', 1, 'b', null)", "map()", "null"],
    "map<decimal(5,2),array<map<date,string>>>": ["map(1.50BD, array(map(date'2024-01-01', 'x'), null))"],
    "array<struct<a:map<int,binary>>>": ["array(named_struct('a', map(1, X'FF')), null)"],
}
# Whether a column of the first type can hold every value of the second
HOLDS = {
    ("bigint", "int"): True,
    ("int", "bigint"): False,
    ("double", "float"): True,
    ("float", "double"): False,
    ("decimal(3,0)", "tinyint"): True,
    ("decimal(4,2)", "tinyint"): False,
    ("decimal(10,0)", "int"): True,
    ("decimal(9,0)", "int"): False,
    ("decimal(19,0)", "bigint"): True,  # the largest bigint has 19 digits
    ("decimal(20,2)", "bigint"): False,
    ("decimal(18,0)", "bigint"): False,
    ("bigint", "decimal(5,0)"): False,
    ("decimal(12,4)", "decimal(8,2)"): True,
    ("decimal(10,2)", "decimal(10,4)"): False,
    ("string", "varchar(3)"): True,
    ("int", "string"): False,
    ("date", "timestamp"): False,
}
# The same where a column of an audit has had several types: dates are moments, and a whole number can be a double
HOLDS_IN_AUDITS = {
    ("string", "map<int,int>"): True,
    ("timestamp_ntz", "date"): True,
    ("date", "timestamp_ntz"): False,
    ("double", "int"): True,
    ("double", "bigint"): False,
    ("float", "smallint"): True,
    ("float", "int"): False,
}
# Types as from_json has them
IN_JSON = {
    "char(3)": "string",
    "varchar(3) collate UNICODE_CI": "string",
    "string collate UTF8_LCASE": "string",
    "map<string,array<varchar(3)>>": "map<string,array<string>>",
    "struct<a:char(2),char:decimal(10,2)>": "struct<a:string,char:decimal(10,2)>",
}
WITHOUT_EQUALITY = {
    "int": False,
    "string": False,
    "map<string,int>": True,
    "variant": True,
    "geometry(4326)": True,
    "array<geography(any)>": True,
    "struct<geometry:int>": False,
    "time(6)": False,
    "array<map<string,int>>": True,
    "array<variant>": True,
    "struct<a:int,m:map<int,int>>": True,
    "struct<v:variant,a:int>": True,
    "struct<variant_id:int,map_no:string>": False,
    "struct<variant:int>": False,
    "array<struct<a:array<double>>>": False,
}
# A type, and the one of its values as the package reads them
PLAIN = {
    "string": "string",
    "char(3)": "string",
    "varchar(3)": "varchar(3)",
    "string collate UTF8_LCASE": "string",
    "varchar(3) collate UNICODE_CI": "string",
    "struct<city:string collate UTF8_LCASE,n:int>": "struct<city:string,n:int>",
    "array<char(2)>": "array<string>",
    "array<struct<`a b`:array<string collate UTF8_LCASE>,x:double>>": "array<struct<`a b`:array<string>,x:double>>",
    "struct<collate:int,char:varchar(2),string:char(1)>": "struct<collate:int,char:varchar(2),string:string>",
    "struct<a:double,b:float>": "struct<a:double,b:float>",
}
# A type as `describe` spells it, and as SQL
QUOTED = {
    "struct<a b:int,c:struct<1x:double>>": "struct<`a b`:int,c:struct<`1x`:double>>",
    "array<struct<x y:decimal(10,2)>>": "array<struct<`x y`:decimal(10,2)>>",
    "struct<`a,b`:int>": "struct<`a,b`:int>",
    "struct<>": "struct<>",
    "struct<a,b:int>": "struct<a,b:int>",  # the name is not clear
    "map<string,int>": "map<string,int>",
}
COMMON = {
    ("int", "int"): "int",
    ("tinyint", "smallint"): "smallint",
    ("int", "bigint"): "bigint",
    ("float", "double"): "double",
    ("int", "decimal(10,2)"): "decimal(12,2)",
    ("bigint", "decimal(38,0)"): "decimal(38,0)",
    ("bigint", "decimal(38,30)"): None,
    ("decimal(10,2)", "decimal(6,4)"): "decimal(12,4)",
    ("int", "string"): "string",
    ("decimal(4,2)", "varchar(10)"): "string",
    ("double", "string"): "string",
    ("string", "char(3)"): "string",
    ("string", "string"): "string",
    ("string collate UTF8_LCASE", "string"): "string",
    ("date", "date"): "date",
    ("date", "string"): None,
    ("boolean", "int"): None,
    ("double", "int"): None,
    ("binary", "string"): None,
    ("struct<a:string collate UTF8_LCASE>", "struct<a:char(3)>"): "struct<a:string>",
    ("array<int>", "array<int>"): "array<int>",
    ("array<int>", "string"): None,
}
