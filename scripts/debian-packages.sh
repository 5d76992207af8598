#!/usr/bin/env bash
# Install the Debian packages named, where they are missing and we may; else say which command to run.
set -euo pipefail
missing=()
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
install=(apt-get -o DPkg::Lock::Timeout=300 install -y -q "${missing[@]}")
if [ "$(id -u)" = 0 ]; then
  apt-get -o DPkg::Lock::Timeout=300 update -q && DEBIAN_FRONTEND=noninteractive "${install[@]}"
elif sudo -n true 2>/dev/null; then
  sudo -n apt-get update -q && sudo -n DEBIAN_FRONTEND=noninteractive "${install[@]}"
else
  echo "These packages are missing; run: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
