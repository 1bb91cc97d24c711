package report

import (
	"fmt"
	"image/color"
	"io"
	"maps"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"platter/bench/iobench"
)

// The size of a picture.
const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 14 * vg.Centimeter
)

// IOPlots draws the ratios of a run, a picture a group and two files each (PNG and SVG): size across,
// ratio up, a line for each pair of sides, with its interval. create opens a file of that name to write.
func IOPlots(r *iobench.Result, create func(name string) (io.WriteCloser, error)) error {
	for _, g := range groups(r) {
		p, err := ratioPlot(r, g)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		if err := SavePlot(p, string(g), create); err != nil {
			return err
		}
	}
	return nil
}

// line is one pair of sides over the sizes.
type line struct {
	plotter.XYs
	plotter.YErrors
}

func ratioPlot(r *iobench.Result, g iobench.Group) (*plot.Plot, error) {
	lines := map[string]*line{}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Group != g || c.Pairs == 0 || c.Skipped != "" {
			continue
		}
		name := fmt.Sprintf("%s: %s / %s", c.Op, side(&c.A), side(&c.B))
		if c.Op == iobench.OpAppend {
			name += fmt.Sprintf(", %d files", c.Files)
		}
		x := float64(c.SizeBytes)
		if c.SizeBytes == 0 { // empty operations: by depth
			x = float64(c.Depth)
		}
		l := lines[name]
		if l == nil {
			l = &line{}
			lines[name] = l
		}
		l.XYs = append(l.XYs, plotter.XY{X: x, Y: c.Throughput.Ratio})
		l.YErrors = append(l.YErrors, struct{ Low, High float64 }{c.Throughput.Ratio - c.Throughput.Low, c.Throughput.High - c.Throughput.Ratio})
	}
	if len(lines) == 0 {
		return nil, nil
	}
	p := plot.New()
	p.Title.Text = groupTitles[g] + "\n" + r.Env.String()
	p.X.Label.Text, p.Y.Label.Text = "bytes of one operation", "throughput ratio, 95% interval"
	if g == iobench.Empty {
		p.X.Label.Text = "operations in a batch"
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, false
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Y.Min = 0
	level := plotter.NewFunction(func(float64) float64 { return 1 })
	level.Color, level.Dashes = color.Gray{128}, []vg.Length{vg.Points(4), vg.Points(4)}
	p.Add(plotter.NewGrid(), level)
	for i, name := range slices.Sorted(maps.Keys(lines)) {
		if err := addLine(p, lines[name], name, i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func addLine(p *plot.Plot, l *line, name string, i int) error {
	drawn, points, err := plotter.NewLinePoints(l.XYs)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(l)
	if err != nil {
		return err
	}
	drawn.Color, points.Color, bars.Color = plotutil.Color(i), plotutil.Color(i), plotutil.Color(i)
	drawn.Dashes, points.Shape = plotutil.Dashes(i/7), plotutil.Shape(i)
	p.Add(drawn, points, bars)
	p.Legend.Add(name, drawn, points)
	return nil
}

// SavePlot draws a plot into two files, name.png and name.svg. create opens a file of that name to write.
func SavePlot(p *plot.Plot, name string, create func(string) (io.WriteCloser, error)) error {
	img := vgimg.PngCanvas{Canvas: vgimg.New(plotWidth, plotHeight)}
	p.Draw(draw.New(img))
	svg := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(svg))
	for _, out := range []struct {
		name string
		w    io.WriterTo
	}{{name + ".png", img}, {name + ".svg", svg}} {
		f, err := create(out.name)
		if err != nil {
			return err
		}
		if _, err := out.w.WriteTo(f); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
