"""What a Spark session needs for `s3a://`; docs/sources.md says why. The jars must be there when the JVM starts.

    settings = session_settings(home) | s3_settings(s3)

The keys come from the environment of the process that starts the JVM: ``s3.environment``.
"""

from __future__ import annotations

from s3_server import REGION, S3Server

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
POSTGRES = "org.postgresql:postgresql:42.7.14"
# hadoop-aws of the Hadoop in pyspark, with the version of the SDK that it was built with
S3 = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.awssdk:s3:2.35.4",
    "software.amazon.awssdk:s3-transfer-manager:2.35.4",
)
EXCLUDES = (
    "software.amazon.awssdk:bundle",  # all of the SDK: 686 MB
    # what Spark brings itself
    "org.apache.hadoop:hadoop-client-*",
    "org.apache.parquet:*",
    "org.apache.logging.*:*",
    "org.apache.httpcomponents:*",
    "io.netty:*",
    "org.slf4j:*",
    "org.locationtech.*:*",
    "org.roaringbitmap:*",
    "org.xerial.*:*",
    "com.*:*",
    "commons-*:*",
    "io.airlift:*",
    "javax.*:*",
    # what nothing calls
    "org.checkerframework:*",
    "org.wildfly.openssl:*",
)


def s3_settings(server: S3Server) -> dict[str, str]:
    """Delta, the driver of PostgreSQL, and S3A with this server."""
    return {
        "spark.jars.packages": ",".join((DELTA, POSTGRES, *S3)),
        "spark.jars.excludes": ",".join(EXCLUDES),
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
        ),
    }
