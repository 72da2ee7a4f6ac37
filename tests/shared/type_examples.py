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
WITHOUT_EQUALITY = {
    "int": False,
    "string": False,
    "map<string,int>": True,
    "variant": True,
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
