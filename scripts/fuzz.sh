#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME, one after the other: `go test -fuzz`
# takes one target of one package at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
found=0
while IFS=: read -r file line; do
  name=${line#func }
  name=${name%%(*}
  found=$((found + 1))
  echo "--- ${file%/*} $name"
  "${GO:-go}" test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-5s}" "./${file%/*}"
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+\(' cmd internal | sort)
if [ "$found" -eq 0 ]; then
  echo "no fuzz target found" >&2
  exit 1
fi
echo "$found fuzz targets"
