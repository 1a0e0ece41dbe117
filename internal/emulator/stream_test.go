package emulator

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inBubble runs the test with an account in a bubble, where time passes at once.
func inBubble(t *testing.T, test func(t *testing.T, cloud *Cloud)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cloud := New(Options{})
		t.Cleanup(func() { cloud.Close(context.Background()) })
		mustDo(t, cloud.CreateBucket("events"))
		test(t, cloud)
	})
}

func (c *Cloud) mustAdd(t *testing.T, name string, records ...string) {
	t.Helper()
	stream, err := c.streams.find(name)
	mustDo(t, err)
	for _, r := range records {
		stream.add([]byte(r))
	}
}

func TestStreamDeliversAfterItsInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cloud) {
		mustDo(t, c.CreateStream(Stream{Name: "s", Bucket: "events", Interval: time.Minute, Prefix: "events/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/", ErrorPrefix: "errors/", GZIP: true}))
		time.Sleep(59 * time.Minute) // the bubble's clock stands at midnight: the hour is 00 until the very end
		c.mustAdd(t, "s", "{E1}\n", "{E2}", "{E3}\n")
		time.Sleep(59 * time.Second)
		c.mustAdd(t, "s", "{E4}\n")
		synctest.Wait()
		if keys := mustKeys(t, c, "events"); len(keys) != 0 {
			t.Errorf("delivered before the interval: %v", keys)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		keys := mustKeys(t, c, "events")
		name := regexp.MustCompile(`^events/dt=2000-01-01/hour=00/s-1-2000-01-01-00-59-00-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.gz$`)
		if len(keys) != 1 || !name.MatchString(keys[0]) {
			t.Fatalf("keys = %v, want one like %s", keys, name)
		}
		zipped, err := c.Object("events", keys[0])
		mustDo(t, err)
		data, err := unzip(zipped)
		mustDo(t, err)
		if want := "{E1}\n{E2}{E3}\n{E4}\n"; bytes.Equal(data, zipped) || string(data) != want {
			t.Errorf("object = %q, want %q, zipped", data, want)
		}
		lines, err := c.Events("events")
		mustDo(t, err)
		if want := [][]byte{[]byte("{E1}"), []byte("{E2}{E3}"), []byte("{E4}")}; !cmp.Equal(lines, want) {
			t.Errorf("Events = %q, want %q", lines, want)
		}
		// A later record starts an interval, and an object, of its own.
		c.mustAdd(t, "s", "{E5}\n")
		time.Sleep(time.Minute)
		synctest.Wait()
		if keys := mustKeys(t, c, "events"); len(keys) != 2 || !strings.HasPrefix(keys[1], "events/dt=2000-01-01/hour=01/s-1-2000-01-01-01-00-00-") {
			t.Errorf("keys = %v, want a second one of 01:00:00", keys)
		}
	})
}

func mustKeys(t *testing.T, c *Cloud, bucket string) []string {
	t.Helper()
	keys, err := c.Keys(bucket)
	mustDo(t, err)
	return keys
}

func TestStreamDeliversAtItsSize(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cloud) {
		mustDo(t, c.CreateStream(Stream{Name: "s", Bucket: "events", SizeMB: 1, Interval: 10 * time.Minute}))
		half := strings.Repeat("x", 512<<10-1) + "\n"
		c.mustAdd(t, "s", half)
		synctest.Wait()
		if keys := mustKeys(t, c, "events"); len(keys) != 0 {
			t.Errorf("delivered at half the size: %v", keys)
		}
		c.mustAdd(t, "s", half)
		synctest.Wait()
		keys := mustKeys(t, c, "events")
		if len(keys) != 1 || !strings.HasPrefix(keys[0], "2000/01/01/00/s-1-2000-01-01-00-00-00-") || strings.HasSuffix(keys[0], ".gz") {
			t.Fatalf("keys = %v, want one under the default prefix", keys)
		}
		data, err := c.Object("events", keys[0])
		mustDo(t, err)
		if string(data) != half+half {
			t.Errorf("the object has %d bytes, want both records as they came", len(data))
		}
	})
}

func TestStreamAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cloud) {
		mustDo(t, c.CreateStream(Stream{Name: "s", Bucket: "events", Interval: -1}))
		c.mustAdd(t, "s", "{E1}\n")
		synctest.Wait()
		if keys := mustKeys(t, c, "events"); len(keys) != 1 {
			t.Errorf("keys = %v, want one at once", keys)
		}
	})
}

func TestStreamKeepsWhatItCannotDeliver(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cloud) {
		mustDo(t, c.CreateStream(Stream{Name: "s", Bucket: "later", SizeMB: 1, Interval: time.Minute}))
		c.mustAdd(t, "s", strings.Repeat("x", 2<<20), "\n{E1}\n") // full, so that it must not spin
		synctest.Wait()
		if err := c.FlushStreams(); err == nil {
			t.Error("FlushStreams without a bucket = nil, want an error")
		}
		c.mustAdd(t, "s", "{E2}\n")
		mustDo(t, c.CreateBucket("later"))
		time.Sleep(time.Minute)
		synctest.Wait()
		lines, err := c.Events("later")
		mustDo(t, err)
		if len(lines) != 3 || string(lines[1]) != "{E1}" || string(lines[2]) != "{E2}" {
			t.Errorf("Events = %d lines, want all three in order", len(lines))
		}
	})
}

func TestCloseDeliversAndLaterRecordsGoAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cloud) {
		for _, name := range []string{"a", "b"} {
			mustDo(t, c.CreateStream(Stream{Name: name, Bucket: "events"}))
			c.mustAdd(t, name, name+"1\n")
		}
		mustDo(t, c.Close(t.Context()), c.Close(t.Context()), c.FlushStreams())
		c.mustAdd(t, "a", "a2\n")
		lines, err := c.Events("events")
		mustDo(t, err)
		got := strings.Fields(string(bytes.Join(lines, []byte(" "))))
		slices.Sort(got)
		if want := []string{"a1", "a2", "b1"}; !cmp.Equal(got, want) {
			t.Errorf("Events = %v, want %v", got, want)
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cloud) {
		blocked := make(chan struct{})
		c.streams.put = func(string, string, string, []byte) error { <-blocked; return nil }
		mustDo(t, c.CreateStream(Stream{Name: "s", Bucket: "events"}))
		c.mustAdd(t, "s", "x\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); err == nil {
			t.Error("Close with a delivery that hangs = nil, want an error")
		}
		close(blocked)
	})
}
