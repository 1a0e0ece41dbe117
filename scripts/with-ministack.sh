#!/usr/bin/env bash
# with-ministack.sh COMMAND...: runs the command beside an emulator of AWS of its own, from
# AWS_VENV, on a free port of the loopback, and ends it. The command finds it by
# DYNAMODB_ENDPOINT, FIREHOSE_ENDPOINT, S3_ENDPOINT, ATHENA_ENDPOINT and AWS_ENDPOINT_URL, with credentials worth
# nothing elsewhere.
set -euo pipefail
: "${AWS_VENV:?is not set: a venv with e2e/deploy/requirements.txt}"

dir=$(mktemp -d)
pid=
stop() {
  if [ -n "$pid" ]; then
    kill -TERM -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  fi
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

port=$("$AWS_VENV/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
set -m # the emulator gets a process group of its own, to end with all it has started
env -u AWS_PROFILE HOME="$dir" TMPDIR="$dir" S3_DATA_DIR="$dir/s3" BIND_HOST=127.0.0.1 GATEWAY_PORT="$port" \
  IOT_MTLS_ENABLED=0 LAMBDA_EXECUTOR=local "$AWS_VENV/bin/ministack" >"$dir/log" 2>&1 &
pid=$!
set +m

export AWS_ENDPOINT_URL="http://127.0.0.1:$port" AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export DYNAMODB_ENDPOINT="$AWS_ENDPOINT_URL" FIREHOSE_ENDPOINT="$AWS_ENDPOINT_URL" S3_ENDPOINT="$AWS_ENDPOINT_URL" ATHENA_ENDPOINT="$AWS_ENDPOINT_URL"
for _ in $(seq 300); do
  kill -0 "$pid" 2>/dev/null || { cat "$dir/log" >&2; echo "MiniStack ended" >&2; exit 1; }
  if "$AWS_VENV/bin/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' "$AWS_ENDPOINT_URL/_ministack/health" 2>/dev/null; then
    status=0
    "$@" || status=$?
    [ "$status" -eq 0 ] || { echo "MiniStack's last lines:" >&2; tail -20 "$dir/log" >&2; }
    exit "$status"
  fi
  sleep 0.1
done
cat "$dir/log" >&2
echo "MiniStack does not answer" >&2
exit 1
