package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run of the benchmark found, and on what machine.
type report struct {
	Date       string `json:"date"`
	Cores      int    `json:"cores"`
	CPU        string `json:"cpu"`
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
	Repeats    int    `json:"repeats"`
	Rows       []row  `json:"rows"`
}

func newReport(b *bench) *report {
	return &report{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), CPU: cpuModel(), LoadBefore: load(), Repeats: b.repeats,
	}
}

func (r *report) finish() { r.LoadAfter = load() }

// print writes the table. Ratios are what carries over to another machine; the seconds are there to see what they are of.
func (r *report) print(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s, %d cores (%s), load %s before; medians of %d pairs, 3 where one takes long\n\n", r.Date, r.Cores, r.CPU, r.LoadBefore, r.Repeats)
	lines := []string{"measured\tpeer\tours\tratio\tbar\t\n"}
	missed := 0
	for i, row := range r.Rows {
		r.Rows[i] = row.judge()
		row = r.Rows[i]
		peer, ratio, limit, mark := "", "", "", ""
		if len(row.Peer) > 0 {
			peer, ratio = figure(row.PeerMedian, row.Unit), fmt.Sprintf("%.3f", row.Ratio)
			if row.Against != "" {
				peer += " (" + row.Against + ")"
			}
		}
		if row.Met != nil {
			limit, mark = row.Bar.String(), "met"
			if !*row.Met {
				mark = "MISSED"
				missed++
			}
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\n", row.What, peer, figure(row.OursMedian, row.Unit), ratio, limit, mark))
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, strings.Join(lines, "")); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case missed > 0:
		fmt.Fprintf(&out, "\n%d of the bars missed.\n", missed)
	case len(r.Rows) > 0:
		out.WriteString("\nAll bars met.\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func figure(value float64, unit string) string {
	switch {
	case unit == "s" && value < 0.9995:
		return fmt.Sprintf("%.0f ms", value*1000)
	case value < 100:
		return fmt.Sprintf("%.2f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

func (r *report) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	return errors.Join(e.Encode(r), f.Close())
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return runtime.GOARCH
}
