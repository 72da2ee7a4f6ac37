"""An S3 server on loopback, at a free port, in this process; its objects are gone when the tests end.

It is moto. `If-None-Match: *` and `If-Match` of a PUT work as in S3: of two writers at the same moment one gets 412.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

REGION = "us-east-1"
ACCESS_KEY = "AKIAHEALINGTABLES"
SECRET_KEY = "s3/cret+of the tests"


@dataclass(frozen=True)
class S3Server:
    """``bucket`` exists; ``url`` is the place of something in it, as Spark writes it."""

    port: int
    bucket: str = "healing-tests"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What clients read: boto3, s3fs, Hadoop's S3A. The JVM keeps the environment in which it was started."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def url(self, path: str = "") -> str:
        return f"s3a://{self.bucket}/{path}"

    def client(self) -> Any:
        """A client of boto3, whatever the environment holds."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

    def keys(self, prefix: str = "") -> list[str]:
        """The names of the objects, sorted."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", []))


@contextmanager
def running(busy_every: int = 0) -> Iterator[S3Server]:
    """Args: busy_every: of so many requests for objects, one gets 503, as from S3 when it is busy; 0: none.

    All servers of a process have the same buckets, so a busy one has a bucket of its own.
    """
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # no line for each request
    with one_request_at_a_time(busy_every):
        moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        moto.start()
        try:
            port = moto.get_host_and_port()[1]
            server = S3Server(port, "healing-tests-busy") if busy_every else S3Server(port)
            server.client().create_bucket(Bucket=server.bucket)
            yield server
        finally:
            moto.stop()


@contextmanager
def one_request_at_a_time(busy_every: int) -> Iterator[None]:
    """S3 checks the condition of a write and writes in one step; moto in two, between which another thread writes."""
    from moto.s3.responses import S3Response

    lock, requests = threading.Lock(), itertools.count(1)
    answer = S3Response.key_response

    def locked(*args: Any, **options: Any) -> Any:
        with lock:
            if busy_every and next(requests) % busy_every == 0:
                return (
                    503,
                    {},
                    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
                )
            return answer(*args, **options)

    with patch.object(S3Response, "key_response", locked):
        yield
