package project_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"potato/project"
)

// bigStudy writes a study of n items, the first labelled of which have two annotators, without holding it.
func bigStudy(tb testing.TB, n, labelled int) *folder {
	f := newFolder(tb, moodScheme+topicsScheme+"- {annotation_type: text, name: note, description: d}\n")
	f.data = "[items.jsonl]"
	stream := func(name string, write func(w *bufio.Writer)) {
		path := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			tb.Fatal(err)
		}
		file, err := os.Create(path)
		if err != nil {
			tb.Fatal(err)
		}
		w := bufio.NewWriterSize(file, 1<<20)
		write(w)
		if err := w.Flush(); err != nil {
			tb.Fatal(err)
		}
		if err := file.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	words := strings.Fields("plot cast music pace ending camera script joke scene tone great awful dull lovely plain odd")
	stream("items.jsonl", func(w *bufio.Writer) {
		for i := range n {
			// Ids are numbers, so that their order as text is not the file's.
			fmt.Fprintf(w, `{"id": %d, "text": "`, i)
			for j := range 24 {
				w.WriteString(words[(i*7+j*j*3+i/16*j)%len(words)])
				w.WriteByte(' ')
			}
			w.WriteString("\"}\n")
		}
	})
	for a, user := range []string{"ann", "bob"} {
		stream("out/"+user+"/user_state.json", func(w *bufio.Writer) {
			fmt.Fprintf(w, "{\n  \"user_id\": %q,\n  \"instance_id_to_behavioral_data\": {", user)
			for i := range labelled {
				fmt.Fprintf(w, "%s\n    \"%d\": {\"instance_id\": \"%d\", \"total_time_ms\": %d, \"interactions\": [], \"pre_annotation_seeds\": {}, \"annotation_changes\": [], \"navigation_history\": []}", comma(i), i, i, 900+i%77)
			}
			w.WriteString("\n  },\n  \"instance_id_to_label_to_value\": {")
			for i := range labelled {
				mood := []string{"good", "bad", "mixed"}[(i+(i/7%5)/4*a)%3]
				fmt.Fprintf(w, "%s\n    \"%d\": [[{\"schema\": \"mood\", \"name\": %q}, %q], [{\"schema\": \"topics\", \"name\": %q}, true], [{\"schema\": \"note\", \"name\": \"text_box\"}, \"note %d of %s\"]]",
					comma(i), i, mood, mood, []string{"travel", "food", "art"}[i/5%3], i, user)
			}
			w.WriteString("\n  }\n}\n")
		})
	}
	return f
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// peakMB is the most memory that the process has held since resetPeak, as the kernel counts it.
func peakMB(tb testing.TB) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skip("peak memory is read from /proc")
	}
	fields := strings.Fields(between(string(text), "VmHWM:", "\n"))
	kb, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kb / 1024
}

func resetPeak() {
	runtime.GC()
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// F3: a million items, half of them labelled by two annotators.
func BenchmarkMillionItems(b *testing.B) {
	f := bigStudy(b, 1_000_000, 500_000)
	ctx := context.Background()
	b.Run("read", func(b *testing.B) {
		resetPeak()
		for b.Loop() {
			s := project.OpenStudy(f.config())
			ready, err := s.Readiness(ctx)
			if err != nil || ready[0].NLabeled != 500_000 {
				b.Fatalf("%+v, %v", ready, err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(peakMB(b), "peak-MB")
	})
	b.Run("bundle", func(b *testing.B) {
		s := project.OpenStudy(f.config())
		defer s.Close()
		if _, err := s.Readiness(ctx); err != nil {
			b.Fatal(err)
		}
		resetPeak()
		for b.Loop() {
			m, err := s.BuildBundle(ctx, filepath.Join(f.dir, "bundle"), project.BundleOptions{Schemas: []string{"mood"}, IncludeUnlabeled: true})
			if err != nil || m.Splits["unlabeled"].N != 500_000 {
				b.Fatalf("%+v, %v", m, err)
			}
		}
		b.ReportMetric(peakMB(b), "peak-MB")
	})
	b.Run("again", func(b *testing.B) {
		s := project.OpenStudy(f.config())
		defer s.Close()
		if _, err := s.Readiness(ctx); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := s.Readiness(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("items", func(b *testing.B) {
		bundle, err := project.OpenBundle(filepath.Join(f.dir, "bundle"))
		if err != nil {
			b.Skip("the bundle's benchmark writes what this one reads")
		}
		resetPeak()
		for b.Loop() {
			n := 0
			for _, err := range bundle.Items() {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 1_000_000 {
				b.Fatal(n)
			}
		}
		b.ReportMetric(peakMB(b), "peak-MB")
	})
}

// Five thousand of ten thousand items labelled by two people, and 1,500 with a free-text scheme beside (F1).
func BenchmarkBundle(b *testing.B) {
	for name, size := range map[string][2]int{"10000": {10_000, 5_000}, "1500": {1_500, 1_500}} {
		f := bigStudy(b, size[0], size[1])
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := project.OpenStudy(f.config())
				if _, err := s.BuildBundle(context.Background(), filepath.Join(f.dir, "bundle"), options("mood")); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Ten thousand items, three of eight annotators on each, five classes: the patterns of votes hardly repeat.
func BenchmarkConsensus(b *testing.B) {
	f := newFolder(b, moodScheme)
	f.data = "[items.jsonl]"
	var items strings.Builder
	votes := make([]map[string]string, 8)
	for i := range 10_000 {
		id := strconv.Itoa(i)
		fmt.Fprintf(&items, "{\"id\": %q, \"text\": \"x\"}\n", id)
		for j := range 3 {
			who := (i*5 + j*(1+i%3)) % 8
			if votes[who] == nil {
				votes[who] = map[string]string{}
			}
			votes[who][id] = radio("mood", fmt.Sprint("class ", (i+i*i%7/(3+j))%5))
		}
	}
	f.write("items.jsonl", items.String())
	for who, answers := range votes {
		f.label(fmt.Sprint("user", who), answers)
	}
	for _, aggregation := range []string{"majority", "consensus"} {
		f.train = "aggregation: " + aggregation
		cfg := f.config()
		b.Run(aggregation, func(b *testing.B) {
			for b.Loop() {
				s := project.OpenStudy(cfg)
				if _, err := s.Readiness(context.Background(), "mood"); err != nil {
					b.Fatal(err)
				}
				_ = s.Close()
			}
		})
	}
}
