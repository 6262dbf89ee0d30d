#!/bin/sh
# apt.sh PACKAGE...: installs Debian packages, as root or with a sudo that asks nothing. Exits 1, and changes nothing, where
# that cannot be.
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo -n'
command -v apt-get >/dev/null && $sudo true 2>/dev/null || exit 1
echo "installing: $*"
$sudo apt-get update -qq || exit 1
exec $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
