"""Run every session of ``noxfile.py``, each in an environment of its own, and count the green ones.

    python campaign/versions.py
    python campaign/versions.py oldest_dependencies docs      # some of them

A session whose Python is not on this machine is skipped, and named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run the sessions; 1 if one is not green, or none was run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write what was counted and found to this file")
    parser.add_argument("sessions", nargs="*", help="sessions of noxfile.py (all)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        chosen = ["--sessions", *given.sessions] if given.sessions else []
        words = ["nox", "--report", str(report), "--no-stop-on-first-error", *chosen]
        subprocess.run([sys.executable, "-m", *words], cwd=ROOT)
        ran = json.loads(report.read_text())["sessions"] if report.exists() else []
    names: dict[str, list[str]] = {"success": [], "skipped": [], "failed": []}
    for session in ran:
        names.setdefault(session["result"], names["failed"]).append(session["name"])
    findings = [f"session {name} is not green" for name in names["failed"]]
    findings += [] if names["success"] else ["no session is green"]
    notes = [f"green: {', '.join(names['success'])}"]
    if names["skipped"]:
        notes.append(f"skipped, for want of their Python: {', '.join(names['skipped'])}")
    if given.json:
        numbers = {"sessions green": len(names["success"]), "skipped": len(names["skipped"])}
        found = {"numbers": numbers, "findings": findings, "notes": notes}
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print("\n".join([*notes, *findings]))
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
