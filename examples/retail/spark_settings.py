"""The spark-defaults.conf of the example: Spark on this machine, S3 through S3A, and what is good for a few rows."""

from __future__ import annotations

from pathlib import Path

HADOOP = "3.5.0"  # of PySpark 4.2.0
AWS_SDK = "2.35.4"  # of that Hadoop
IN_SPARK = "org.apache.httpcomponents:*,io.netty:*,org.slf4j:*,com.*:*,commons-*:*"
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # on a few rows, compiling code takes most of the time
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # hadoop-aws asks for the bundle of all services, 686 MB
    "spark.jars.packages": ",".join(
        [
            f"org.apache.hadoop:hadoop-aws:{HADOOP}",
            f"software.amazon.awssdk:s3:{AWS_SDK}",
            f"software.amazon.awssdk:s3-transfer-manager:{AWS_SDK}",
        ]
    ),
    "spark.jars.excludes": f"software.amazon.awssdk:bundle,org.wildfly.openssl:*,{IN_SPARK}",
    # AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY; Spark itself reads AWS_ENDPOINT_URL
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
    ),
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
}


def write_settings(home: Path) -> Path:
    """The folder for SPARK_CONF_DIR. Args: home: the folder for it, and for the warehouse and the metastore of dbt."""
    folder = home / "spark"
    folder.mkdir()
    metastore = f"jdbc:derby:;databaseName={home}/metastore;create=true"
    places = {
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
    }
    lines = [f"{name} {value}\n" for name, value in {**SETTINGS, **places}.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    return folder
