package disklab

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// figure is a picture on the page.
type figure struct {
	Title, Caption string
	SVG            template.HTML
}

// table is a group's figures on the page.
type table struct {
	Title   string
	Head    []string
	Rows    [][]string
	LeftOut []string
}

// Page writes one HTML page that needs nothing else: words, settings, plots, and all figures.
func (r *Result) Page(w io.Writer) error {
	pics, err := r.pictures()
	if err != nil {
		return err
	}
	page := struct {
		*Result
		Title, Properties string
		Headlines         []headline
		Figures           []figure
		Tables            []table
	}{Result: r, Title: r.title(), Headlines: r.headlines()}
	for _, pic := range pics {
		s, err := svg(pic.p)
		if err != nil {
			return err
		}
		// What gonum draws is made of our own titles: nothing of it comes from outside.
		page.Figures = append(page.Figures, figure{pic.title + r.word(), pic.caption, template.HTML(s)})
	}
	for _, g := range Groups {
		if rows := r.rows(g); len(rows) > 0 {
			page.Tables = append(page.Tables, table{Titles[g] + r.word(), head(g), rows, r.leftOut(g)})
		}
	}
	var lines []string
	for _, a := range r.toSet() {
		lines = append(lines, a.Setting+"="+a.Value)
	}
	page.Properties = strings.Join(lines, "\n")
	return pageTemplate.Execute(w, page)
}
