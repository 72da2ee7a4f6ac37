"""Make the commits and the files of a release in a clean clone: all but the tag, see RELEASE.md.

python scripts/release.py 0.2.0
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "target" / "release"


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def replaced(name: str, pattern: str, text: str) -> None:
    """Replace the only place of a file that matches. Raises: SystemExit if there is none, or more than one."""
    found, count = re.subn(pattern, text, (ROOT / name).read_text(), flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{name}: wanted one place that matches {pattern}, got {count}")
    (ROOT / name).write_text(found)


def main(version: str) -> None:
    if not re.fullmatch(r"\d+[.]\d+[.]\d+", version):
        raise SystemExit(f"wanted a version such as 0.2.0, got {version!r}")
    if git("status", "--porcelain"):
        raise SystemExit("wanted a clean working tree: commit or remove your changes first")
    if f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text():
        raise SystemExit(f"CHANGELOG.md has a section {version}: name the next version")
    replaced("CHANGELOG.md", r"^## Unreleased\n\n(?=- )", f"## {version} ({datetime.date.today()})\n\n")
    replaced("dbt_project.yml", r"^version: .*$", f"version: {version}")
    git("commit", "--quiet", "--all", "--message", f"Version {version}")
    # A commit cannot contain its own id, so the next one names it.
    commit = git("rev-parse", "HEAD").strip()
    replaced("README.md", r"(?<=^    revision: )\w+$", commit)
    git("commit", "--quiet", "--all", "--message", f"README: the commit of version {version}")
    FILES.mkdir(parents=True, exist_ok=True)
    for file in FILES.iterdir():
        file.unlink()
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(FILES)], check=True, cwd=ROOT)
    name = f"healing-tables-{version}"
    git("archive", f"--prefix={name}/", f"--output={FILES / name}.tar.gz", "HEAD")
    print(f"Version {version}: two commits, and these files in {FILES}. What is left is in RELEASE.md.")
    for file in sorted(FILES.iterdir()):
        print(f"  {file.name}, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
