#!/bin/bash
# docs/check.sh BUILD: opens every page of BUILD/docs/html in Chromium, which it installs where it is not there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
if ! command -v chromium >/dev/null; then
  sudo=
  [ "$(id -u)" = 0 ] || sudo='sudo -n'
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
"$build/docs-venv/bin/python" "$here/check.py" "$build/docs/html"
