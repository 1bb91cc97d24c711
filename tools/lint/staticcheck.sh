#!/bin/sh
# Runs staticcheck at the version given. Where it cannot be fetched the check is skipped, by name.
tool=$1
if ! go run "$tool" -version >/dev/null 2>&1; then
	echo "SKIPPED staticcheck: $tool could not be fetched and built here"
	exit 0
fi
exec go run "$tool" ./...
