package disklab

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"platter/bench/report"
	"platter/io/profile"
)

// picture is one plot, and what to see in it.
type picture struct {
	name, title, caption string
	p                    *plot.Plot
}

// curve is one line of a plot; points without a height are left out.
type curve struct {
	name string
	xys  plotter.XYs
}

func (c *curve) add(x, y float64) {
	if x > 0 && y > 0 {
		c.xys = append(c.xys, plotter.XY{X: x, Y: y})
	}
}

// pictures are those that the run has figures for.
func (r *Result) pictures() (out []picture, err error) {
	for _, f := range []func(*Result) (picture, []curve, []bar){sizePicture, depthPicture, growingPicture, syncPicture, coldPicture, segmentPicture} {
		pic, curves, bars := f(r)
		title := pic.title + r.word()
		if len(bars) > 0 {
			pic.p, err = barPlot(title, bars)
		} else {
			err = addCurves(pic.p, title, curves)
		}
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", pic.name, err)
		}
		if pic.p != nil && (len(bars) > 0 || drawn(curves)) {
			out = append(out, pic)
		}
	}
	return out, nil
}

func drawn(curves []curve) bool {
	for _, c := range curves {
		if len(c.xys) > 0 {
			return true
		}
	}
	return false
}

func axes(x, y string, ticks map[float64]string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = decades{}
	var marks plot.ConstantTicks
	for _, v := range slices.Sorted(maps.Keys(ticks)) {
		marks = append(marks, plot.Tick{Value: v, Label: ticks[v]})
	}
	p.X.Tick.Marker = marks
	return p
}

func sizeTicks() map[float64]string {
	m := map[float64]string{}
	for _, s := range sizes {
		m[float64(s)] = profile.Size(s)
	}
	return m
}

func numberTicks(ns ...int) map[float64]string {
	m := map[float64]string{}
	for _, n := range ns {
		m[float64(n)] = fmt.Sprint(n)
	}
	return m
}

func sizePicture(r *Result) (picture, []curve, []bar) {
	pic := picture{name: "sizes", title: "Throughput by size of one operation",
		caption: "The further apart the lines are on the left, the more it costs to go to and fro in small pieces. Where they meet is how long a run has to be. Past the page cache.",
		p:       axes("bytes of one operation", "MB/s", sizeTicks())}
	var curves []curve
	for _, k := range []struct {
		op, pattern string
		depth       int
	}{{Read, Sequential, 32}, {Write, Sequential, 32}, {Read, Random, 32}, {Write, Random, 32}, {Read, Random, 1}, {Write, Random, 1}} {
		c := curve{name: fmt.Sprintf("%s %s, %d at once", k.pattern, k.op, k.depth)}
		for _, s := range sizes {
			if cell := r.device(k.op, k.pattern, s, k.depth); cell != nil {
				c.add(float64(s), cell.BytesPerSec/1e6)
			}
		}
		curves = append(curves, c)
	}
	return pic, curves, nil
}

func depthPicture(r *Result) (picture, []curve, []bar) {
	pic := picture{name: "depths", title: "4 KiB at random, many at once",
		caption: "A line that climbs: the disk works on many requests at once (flash, or a set of disks). A flat one: a single arm, or a queue that is no help.",
		p:       axes("operations under way at once", "operations a second", numberTicks(allDepths...))}
	var curves []curve
	for _, op := range []string{Read, Write} {
		c := curve{name: op + "s"}
		for _, d := range allDepths {
			if cell := r.device(op, Random, small, d); cell != nil {
				c.add(float64(d), cell.OpsPerSec)
			}
		}
		curves = append(curves, c)
	}
	return pic, curves, nil
}

func growingPicture(r *Result) (picture, []curve, []bar) {
	pic := picture{name: "growing", title: "Files that grow side by side",
		caption: "How many partitions the disk carries: as far as the upper line stays level. The lower line is the price of syncing every append.",
		p:       axes("files", "MB/s", numberTicks(1, 4, 16, 64, 256, 1024, 4096))}
	free, synced := curve{name: "one sync at the end"}, curve{name: "every append synced"}
	for i := range r.Cells {
		c := &r.Cells[i]
		switch {
		case c.Group != Growing:
		case c.SyncEach:
			synced.add(float64(c.Files), c.BytesPerSec/1e6)
		default:
			free.add(float64(c.Files), c.BytesPerSec/1e6)
		}
	}
	return pic, []curve{free, synced}, nil
}

func syncPicture(r *Result) (picture, []curve, []bar) {
	pic := picture{name: "sync", title: "What an append and its sync take",
		caption: "What an acknowledgement would wait for, if every append were synced.",
		p:       axes("bytes of the append", "milliseconds", sizeTicks())}
	half, most := curve{name: "half of them"}, curve{name: "99 of 100"}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Group == Syncs && c.Files == 1 {
			half.add(float64(c.SizeBytes), c.P50/1e3)
			most.add(float64(c.SizeBytes), c.P99/1e3)
		}
	}
	return pic, []curve{half, most}, nil
}

// bar is one value with its name.
type bar struct {
	name  string
	value float64
}

func coldPicture(r *Result) (picture, []curve, []bar) {
	pic := picture{name: "cold", title: "Readers of cold data, MB/s of all",
		caption: "Consumers that catch up, beside an appender. In turns is what the broker does (spindle.cold.reads=auto)."}
	var bars []bar
	for _, k := range []struct {
		name    string
		readers int
		lane    bool
	}{{"one alone", 1, false}, {"many, each for itself", readers, false}, {"many in turns", readers, true}} {
		if c := r.find(func(c *Cell) bool { return c.Group == Cold && c.Readers == k.readers && c.Lane == k.lane }); c != nil {
			bars = append(bars, bar{k.name, c.BytesPerSec / 1e6})
		}
	}
	return pic, nil, bars
}

func segmentPicture(r *Result) (picture, []curve, []bar) {
	ticks := map[float64]string{}
	grown, plain := curve{name: "written, grown ahead"}, curve{name: "written, not"}
	back, backPlain := curve{name: "read back, grown ahead"}, curve{name: "read back, not"}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Group != Segment {
			continue
		}
		ticks[float64(c.SegmentBytes)] = profile.Size(c.SegmentBytes)
		write, read := &plain, &backPlain
		if c.GrowAhead {
			write, read = &grown, &back
		}
		write.add(float64(c.SegmentBytes), c.BytesPerSec/1e6)
		read.add(float64(c.SegmentBytes), c.ReadBack/1e6)
	}
	pic := picture{name: "segments", title: "Segments and growing ahead",
		caption: "Short segments cost throughput where the lines fall to the left. Growing ahead pays where its lines are the upper ones.",
		p:       axes("bytes of a segment", "MB/s", ticks)}
	return pic, []curve{grown, plain, back, backPlain}, nil
}

// decades puts labels at 1, 2 and 5 times the powers of ten.
type decades struct{}

// Ticks are those between least and most.
func (decades) Ticks(least, most float64) (ticks []plot.Tick) {
	for unit := 1e-6; unit <= 1e12; unit *= 10 {
		for _, k := range []float64{1, 2, 5} {
			if v := k * unit; v >= least && v <= most {
				t := plot.Tick{Value: v}
				if k == 1 || most/least < 100 {
					t.Label = fmt.Sprintf("%.6g", v)
				}
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

func addCurves(p *plot.Plot, title string, curves []curve) error {
	least, most := 0.0, 0.0
	for i, c := range curves {
		if len(c.xys) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(c.xys)
		if err != nil {
			return err
		}
		line.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		line.Width, points.Shape = vg.Points(1.5), plotutil.Shape(i)
		p.Add(line, points)
		p.Legend.Add(c.name, line, points)
		for _, xy := range c.xys {
			if least == 0 || xy.Y < least {
				least = xy.Y
			}
			most = max(most, xy.Y)
		}
	}
	if most == 0 {
		return nil
	}
	decorate(p, title)
	// Room below for the legend, as a logarithmic axis has it.
	p.Y.Min, p.Y.Max = least/1.5, most*1.5
	p.Y.Min /= max(1, math.Pow(most/least, 0.07*float64(len(curves))))
	if most/least < 10 {
		p.Y.Min = least / 4
	}
	p.Add(plotter.NewGrid())
	return nil
}

func decorate(p *plot.Plot, title string) {
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = vg.Points(12)
	p.Title.Padding = vg.Points(6)
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding = vg.Points(2)
	p.Legend.Top, p.Legend.Left = false, false
	for _, st := range []*text.Style{&p.Title.TextStyle, &p.Legend.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		st.Font.Variant = "Sans" // as wide as Arial, which every browser has or replaces by its like
	}
	p.BackgroundColor = color.White
}

func barPlot(title string, bars []bar) (*plot.Plot, error) {
	p := plot.New()
	decorate(p, title)
	values, names := plotter.Values{}, []string{}
	for _, b := range bars {
		values, names = append(values, b.value), append(names, b.name)
	}
	chart, err := plotter.NewBarChart(values, vg.Points(46))
	if err != nil {
		return nil, err
	}
	chart.Color, chart.LineStyle.Width = plotutil.Color(2), 0
	p.Add(chart)
	p.NominalX(names...)
	p.Y.Label.Text, p.Y.Min = "MB/s", 0
	return p, nil
}

// Plots draws each picture into two files, PNG and SVG. create opens a file of that name to write.
func (r *Result) Plots(create func(name string) (io.WriteCloser, error)) error {
	pics, err := r.pictures()
	if err != nil {
		return err
	}
	for _, pic := range pics {
		if err := report.SavePlot(pic.p, "disk-"+pic.name, create); err != nil {
			return err
		}
	}
	return nil
}

// svg draws a plot for a page: small, so that its letters are legible on a telephone.
func svg(p *plot.Plot) (string, error) {
	c := vgsvg.New(13*vg.Centimeter, 9.5*vg.Centimeter)
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	out := b.Bytes()
	if at := bytes.Index(out, []byte("<svg")); at > 0 { // without the XML heading
		out = out[at:]
	}
	return string(out), nil
}
