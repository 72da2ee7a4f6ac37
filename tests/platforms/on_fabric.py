"""dbt-fabricspark without Microsoft Fabric: its real adapter and macros, over a Livy server in this process.

    python on_fabric.py HOME

The server speaks as much of Livy's HTTP interface as the adapter uses, and runs the SQL on a Spark session; so each
result goes through JSON. Writes HOME/answer.json as on_server.py does, with `statements`, the SQL that was sent.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import yaml
from on_server import Runs, run_merges, run_people, write_project
from pyspark.sql import DataFrame, SparkSession
from sessions import session_settings

STATEMENTS: list[str] = []


class Livy(BaseHTTPRequestHandler):
    """One session, whose statements are complete when they have been sent."""

    spark: SparkSession
    outputs: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/sessions":
            self.answer({"id": 0, "state": "idle"})
            return
        STATEMENTS.append(request["code"])
        self.outputs.append(self.run(request["code"]))
        self.answer({"id": len(self.outputs) - 1, "state": "running"})

    def do_GET(self) -> None:
        if "/statements/" in self.path:
            output = self.outputs[int(self.path.rsplit("/", 1)[1])]
            self.answer({"state": "available", "output": output})
        else:
            self.answer({"id": 0, "state": "idle"})

    def do_DELETE(self) -> None:
        self.answer({})

    def run(self, code: str) -> dict[str, Any]:
        try:
            return {"status": "ok", "data": {"application/json": result_of(self.spark.sql(code))}}
        except Exception as error:  # noqa: BLE001  (whatever it is: Livy sends it to the client)
            return {"status": "error", "ename": type(error).__name__, "evalue": str(error)}

    def answer(self, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def result_of(frame: DataFrame) -> dict[str, Any]:
    """Rows as Livy's JSON has them: a list for each, what JSON does not know as text."""
    schema = json.loads(frame.schema.json())
    rows = [[json.loads(json.dumps(value, default=str)) for value in row] for row in frame.collect()]
    return {"schema": schema, "data": rows}


def profile(port: int) -> dict[str, Any]:
    output = {
        "type": "fabricspark",
        "method": "livy",
        "livy_mode": "local",
        "livy_url": f"http://127.0.0.1:{port}",
        "schema": "people",
        "spark_config": {"name": "people"},
        "threads": 1,
    }
    return {"target": "dev", "outputs": {"dev": output}}


def main(home: Path) -> None:
    # Fabric's Spark is 3.5, without scripts
    settings = session_settings(home) | {"spark.sql.scripting.enabled": "false"}
    Livy.spark = SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Livy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (home / "profiles.yml").write_text(yaml.safe_dump({"people": profile(server.server_port)}))
    runs = Runs(home)
    rows = run_people(runs, write_project(home)) | run_merges(home, runs.run, runs.rows)
    server.shutdown()
    (home / "answer.json").write_text(json.dumps({"runs": runs.found, "rows": rows, "statements": STATEMENTS}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
