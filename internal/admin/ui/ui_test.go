package ui

import (
	"io"
	"math"
	"strings"
	"testing"

	"switchboard/internal/record"
)

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1000), "1,000"},
		{Count(-1234567), "-1,234,567"},
		{Count(math.MinInt64), "-9,223,372,036,854,775,808"},
		{CountOf(nil), "---"},
		{CountOf(new(int64)), "0"},
		{Compact(9999), "9,999"},
		{Compact(12345), "12.3k"},
		{Compact(1_234_567), "1.23M"},
		{Compact(4_000_000), "4M"},
		{Compact(2_500_000_000), "2.5B"},
		{Compact(3e12), "3T"},
		{Compact(-5), "-5"},
		{USD(0), "$0"},
		{USD(1), "$0.000000001"},
		{USD(46_620), "$0.00004662"},
		{USD(123_456_789), "$0.1235"},
		{USD(999_999_999), "$1.00"},
		{USD(1_000_000_000), "$1.00"},
		{USD(1_234_567_890_000_000), "$1,234,567.89"},
		{USD(-2_500_000_000), "-$2.50"},
		{USD(500_000_000), "$0.5"},
		{USD(math.MaxInt64), "$9,223,372,036.85"},
		{USD(math.MinInt64), "-$9,223,372,036.85"},
		{USDOf(nil), "---"},
		{exact(nil), "unknown"},
		{exact(new(int64)), "$0"},
		{Percent(0, 0), "---"},
		{Percent(0, 5), "0 %"},
		{Percent(1, 1000), "0.1 %"},
		{Percent(1, 3), "33 %"},
		{Percent(999, 1000), "99.9 %"},
		{Percent(99_999, 100_000), "99.9 %"},
		{Percent(5, 5), "100 %"},
		{Millis(0), "0 ms"},
		{Millis(999), "999 ms"},
		{Millis(1500), "1.5 s"},
		{Millis(61_000), "1 min 1 s"},
		{millisOf(nil), "---"},
		{When(1772323198999), "2026-02-28 23:59:58"},
		{iso(1772323198999), "2026-02-28T23:59:58.999Z"},
		{Clip(5, "abcde"), "abcde"},
		{Clip(5, "abcdef"), "abcd…"},
		{Clip(3, "会话会话"), "会话…"},
		{tokens(&record.Event{}), "---"},
		{tokens(&record.Event{OutputTokens: new(int64)}), "0"},
		{cachedShare(&record.Event{InputTokens: new(int64), CachedInputTokens: new(int64)}), ""},
		{shareOf(1, 4), "25.0"},
		{shareOf(9, 4), "100.0"},
		{shareOf(1, 0), "0"},
		{shareOf(-1, 4), "0"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestChart(t *testing.T) {
	c := NewChart("t", []string{"a", "b", "c"}, Count, Series{"x", "sx", []int64{10, 0, 30}}, Series{"y", "sy", []int64{20, 0, -5}})
	if len(c.Columns) != 3 || c.Columns[0].Note != "a\nx 10\ny 20" || c.Ticks[2].Text != "30" || c.Ticks[1].Text != "15" {
		t.Errorf("chart %+v", c)
	}
	bottom := float64(chartTop + plotHeight)
	for i, column := range c.Columns {
		y := bottom
		for _, l := range column.Layers {
			if math.Abs(l.Y+l.Height-y) > .2 || l.Y < chartTop-.1 || l.Height < 0 {
				t.Errorf("column %d: %+v is not on %.1f", i, l, y)
			}
			y = l.Y
		}
		if column.X < chartLeft || column.X+column.Width > chartWidth {
			t.Errorf("column %d is outside: %+v", i, column)
		}
	}
	for n := range 400 { // whatever the number of columns, there are a few labels, and the last one is there
		labels := make([]string, n)
		c := NewChart("t", labels, Count, Series{"x", "sx", make([]int64, n)})
		if len(c.Labels) > chartLabels || n > 0 && len(c.Labels) == 0 || len(c.Columns) != n {
			t.Errorf("%d columns: %d labels", n, len(c.Labels))
		}
	}
	NewChart("t", []string{"a"}, Count, Series{"x", "sx", []int64{math.MaxInt64}})
}

func TestNiceTop(t *testing.T) {
	for most, want := range map[int64]int64{0: 2, 2: 2, 3: 4, 7: 8, 9: 10, 10: 10, 11: 20, 21: 30, 24_000: 30_000, 51: 60, 99: 100, math.MaxInt64: math.MaxInt64 - 1} {
		if got := niceTop(most); got != want {
			t.Errorf("niceTop(%d) = %d, want %d", most, got, want)
		}
	}
}

// Every template can be written: a fault in one would else be found by whoever opens it.
func TestTemplatesParse(t *testing.T) {
	s := New()
	for _, name := range []string{"head", "foot", "audit", "usage", "providers", "models", "login", "message", "older", "loading"} {
		if s.pages().Lookup(name) == nil {
			t.Errorf("there is no template %q", name)
		}
	}
	if err := s.Render(io.Discard, "loading", nil); err != nil {
		t.Error(err)
	}
	if err := s.Render(io.Discard, "nope", nil); err == nil {
		t.Error("a page that is not there was rendered")
	}
}

// The policy of the pages allows no style and no script but our files: templates must not
// have any.
func TestTemplatesKeepThePolicy(t *testing.T) {
	for _, name := range []string{"layout", "audit", "usage", "providers", "models"} {
		text, err := files.ReadFile("pages/" + name + ".html")
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{" style=", "<style", " onclick", " onchange", "javascript:", "http://", "https://"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s has %q", name, word)
			}
		}
	}
}

func BenchmarkFirstPage(b *testing.B) {
	for b.Loop() { // what a cold start pays for its first page, beside the answer
		if err := New().Render(io.Discard, "loading", nil); err != nil {
			b.Fatal(err)
		}
	}
}
