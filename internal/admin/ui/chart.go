package ui

import (
	"math"
	"strconv"
)

// The canvas of a chart, in units of its own: a page scales it to the room there is.
const (
	chartWidth, chartHeight    = 480, 190
	chartLeft, chartBottom     = 70, 24
	chartTop, chartRight       = 8, 4
	plotWidth, plotHeight      = chartWidth - chartLeft - chartRight, chartHeight - chartTop - chartBottom
	chartLabels, chartMaxWidth = 5, 34
)

// Series is one layer of stacked bars.
type Series struct {
	Name, Class string
	Values      []int64 // as many as the chart has columns
}

// Chart is stacked bars as coordinates; the template "chart" draws them. It has no colours and
// no sizes of text: the style has them, for light and dark.
type Chart struct {
	Title         string
	Width, Height int
	Left, Right   int
	LabelX        int // where texts of the value axis end
	LabelY        int // the line of the other axis' texts
	Legend        []Series
	Columns       []Column
	Ticks         []Tick
	Labels        []Tick
}

// Column is one bar with its layers, from below.
type Column struct {
	X, Width float64
	Top      float64
	Height   float64
	Note     string // what it says when pointed at
	Layers   []Layer
}

// Layer is a part of a bar.
type Layer struct {
	Class     string
	Y, Height float64
}

// Tick is a mark on an axis.
type Tick struct {
	At   float64
	Text string
}

// NewChart lays out bars for columns with these labels. format writes a value at the axis and
// in notes.
func NewChart(title string, labels []string, format func(int64) string, series ...Series) Chart {
	c := Chart{
		Title: title, Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - chartRight,
		LabelX: chartLeft - 6, LabelY: chartHeight - 6, Legend: series,
	}
	most := int64(0)
	for i := range labels {
		most = max(most, total(series, i))
	}
	top := niceTop(most)
	for i := range 3 {
		value := top / 2 * int64(i)
		c.Ticks = append(c.Ticks, Tick{chartTop + plotHeight*(1-float64(i)/2), format(value)})
	}
	step := float64(plotWidth) / float64(max(1, len(labels)))
	width := min(chartMaxWidth, max(.5, step*.72))
	for i, label := range labels {
		left := chartLeft + step*float64(i)
		column := Column{X: round(left + (step-width)/2), Width: round(width), Top: chartTop, Height: plotHeight, Note: label}
		y := float64(chartTop + plotHeight)
		for _, s := range series {
			column.Note += "\n" + s.Name + " " + format(s.Values[i])
			height := float64(plotHeight) * float64(max(0, s.Values[i])) / float64(top)
			y -= height
			column.Layers = append(column.Layers, Layer{s.Class, round(y), round(height)})
		}
		c.Columns = append(c.Columns, column)
	}
	every := max(1, (len(labels)+chartLabels-1)/chartLabels)
	for i := len(labels) - 1; i >= 0; i -= every {
		at := chartLeft + step*(float64(i)+.5)
		c.Labels = append(c.Labels, Tick{round(min(at, chartWidth-24)), short(labels[i])})
	}
	return c
}

// short is a day without its year, which would not leave room for other days.
func short(label string) string {
	if len(label) == len("2006-01-02") {
		return label[len("2006-"):]
	}
	return label
}

func total(series []Series, i int) (sum int64) {
	for _, s := range series {
		sum += max(0, s.Values[i])
	}
	return sum
}

// niceTop is the end of the axis: the next small number times a power of ten, so that its half
// is whole.
func niceTop(most int64) int64 {
	if most <= 2 {
		return 2
	}
	power := int64(math.Pow(10, math.Floor(math.Log10(float64(most)))))
	for _, factor := range []int64{1, 2, 3, 4, 5, 6, 8} {
		if top := power * factor; most <= top && top%2 == 0 {
			return top
		}
	}
	if power > math.MaxInt64/10 {
		return math.MaxInt64 - 1
	}
	return power * 10
}

// round keeps the page short: a tenth of a unit is less than a pixel.
func round(f float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', 1, 64), 64)
	if err != nil {
		return f
	}
	return short
}
