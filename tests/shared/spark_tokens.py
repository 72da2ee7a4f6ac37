"""The tokens of SQL, by Spark's own lexer."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

TOKEN = re.compile(r",<(-?\d+)>,(?:channel=\d+,)?\d+:\d+\]")


def tokens(spark: SparkSession, sql: str) -> list[str]:
    """The kinds of the tokens, without white space. A text may be written as one that is decoded."""
    sql = re.sub(r"url_decode[(]('[^']*')[)]", r"\1", sql)
    jvm: Any = spark._jvm
    parser, antlr = jvm.org.apache.spark.sql.catalyst.parser, jvm.org.antlr.v4.runtime
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(antlr.CharStreams.fromString(sql)))
    stream = antlr.CommonTokenStream(lexer)
    stream.fill()
    space = str(lexer.WS)
    return [kind for kind in TOKEN.findall(stream.getTokens().toString()) if kind != space]
