"""What the suites share. The Go test that starts them sets the environment."""

import json
import os
import urllib.request

BASE = os.environ["BASE_URL"]
KEY = os.environ["CLIENT_KEY"]
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
