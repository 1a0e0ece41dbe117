"""What the suites share. The Go test that starts them sets the environment."""

import json
import os
import time
import urllib.request

BASE = os.environ["BASE_URL"]
KEY = os.environ["CLIENT_KEY"]
TOO_LARGE = json.loads(os.environ["TOO_LARGE"])  # sizes of bodies, in bytes, that are refused
UPSTREAMS = json.loads(os.environ["UPSTREAMS"])


def control(name, **behaviour):
    """Replaces the behaviour of an upstream."""
    request = urllib.request.Request(
        UPSTREAMS[name] + "/ctl", data=json.dumps(behaviour).encode(), method="POST"
    )
    urllib.request.urlopen(request).close()


def session(name):
    """The header that names a session; the Go test looks for it afterwards."""
    return {"X-Session-Id": "py-" + name}


def long(size):
    """Text of so many bytes of JSON, in lines as people write them."""
    return ("word " * 15 + "\n") * (size // 77)


# Makes an upstream answer with 7 MB.
LARGE = {"chunks": 71, "piece_bytes": 100_000}


def large_text(name):
    """The text of such an answer."""
    pieces = (f" Größe {i} {'x' * LARGE['piece_bytes']}👋" for i in range(1, LARGE["chunks"]))
    return f"Hello from {name}." + "".join(pieces)


# The sessions that talk at the same time.
PARALLEL = [f"parallel-{i}" for i in range(12)]

# Makes an upstream pause between the pieces of its answer.
PACED = {"chunks": 6, "gap_ms": 200}


def assert_paced(case, texts):
    """Most of the texts, which are those of a paced stream, come as far apart as they are sent."""
    times = [time.monotonic() for text in texts if text]
    case.assertEqual(len(times), PACED["chunks"])
    gaps = [1000 * (after - before) for before, after in zip(times, times[1:])]
    case.assertGreater(sum(gap > PACED["gap_ms"] / 2 for gap in gaps), len(gaps) / 2, gaps)


def assert_stayed(case, turns, name, first):
    """The headers of a conversation's turns say that it stayed where it began."""

    def say(header):
        return [headers[header] for headers in turns]

    count = len(turns)
    case.assertEqual(say("x-switchboard-session"), ["py-" + name] * count)
    case.assertEqual(say("x-switchboard-session-source"), ["header:x-session-id"] * count)
    case.assertEqual(say("x-switchboard-switches"), ["0"] * count)
    case.assertEqual(say("x-switchboard-decision"), [first] + ["affinity"] * (count - 1))
    for header in ["x-switchboard-provider", "x-switchboard-model"]:
        case.assertEqual(len(set(say(header))), 1, header)
    case.assertEqual(len(set(say("x-request-id"))), count)
