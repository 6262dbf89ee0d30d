#!/bin/bash
# docs/check.sh BUILD: opens every page of BUILD/docs/html in Chromium, which it installs where it is not there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
command -v chromium >/dev/null || "$here/../apt.sh" chromium fonts-dejavu-core
"$build/docs-venv/bin/python" "$here/check.py" "$build/docs/html"
