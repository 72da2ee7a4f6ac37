"""The S3 server of the tests: a conditional write has one winner, as in S3."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from s3_server import S3Server


def puts(s3: S3Server, client: Any, key: str, body: str, **condition: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        client.put_object(Bucket=s3.bucket, Key=key, Body=body.encode(), **condition)
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 412
        return False
    return True


def test_objects(s3: S3Server) -> None:
    client = s3.client()
    assert puts(s3, client, "objects/b", "first", IfNoneMatch="*")
    assert not puts(s3, client, "objects/b", "second", IfNoneMatch="*")
    assert puts(s3, client, "objects/a", "first")
    assert client.get_object(Bucket=s3.bucket, Key="objects/b")["Body"].read() == b"first"
    assert s3.keys("objects/") == ["objects/a", "objects/b"]


@pytest.mark.parametrize("condition", ["IfNoneMatch", "IfMatch"])
def test_a_race_has_one_winner(s3: S3Server, monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    from moto.s3.models import S3Backend

    key, expected = f"race/{condition}", "*"
    clients = [s3.client() for _ in range(4)]
    if condition == "IfMatch":
        expected = clients[0].put_object(Bucket=s3.bucket, Key=key, Body=b"old")["ETag"]
    write = S3Backend.put_object

    def write_late(*args: Any, **options: Any) -> Any:
        time.sleep(0.05)  # the condition was checked before
        return write(*args, **options)

    monkeypatch.setattr(S3Backend, "put_object", write_late)
    with ThreadPoolExecutor(len(clients)) as pool:
        won = list(pool.map(lambda n: puts(s3, clients[n], key, f"of {n}", **{condition: expected}), range(4)))
    assert won.count(True) == 1
    stored = clients[0].get_object(Bucket=s3.bucket, Key=key)["Body"].read()
    assert stored == f"of {won.index(True)}".encode()
