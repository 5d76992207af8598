package project

import (
	_ "embed" // the annotation tool's types of schemes
	"os"
	"slices"
	"strconv"
	"strings"
)

// checkStudy checks what the annotation tool demands of a study and a training server depends on: where the items are,
// what identifies them, what was asked.
func (d *decoder) checkStudy(root *node, c *Config) {
	for _, key := range []string{"annotation_task_name", "item_properties", "output_annotation_dir"} {
		if root.get(key) == nil {
			d.fail(nil, key, "", "is missing")
		}
	}
	if p := root.get("item_properties"); p != nil && p.kind == kindMap {
		for _, key := range []string{"id_key", "text_key"} {
			if p.get(key) == nil {
				d.fail(p, "item_properties."+key, "", "is missing")
			}
		}
	}
	d.checkFiles(root, c)
	schemes := root.get("annotation_schemes")
	switch {
	case schemes == nil && root.get("phases") == nil:
		d.fail(nil, "annotation_schemes", "", "is missing: the study asks nothing")
	case schemes != nil && schemes.kind == kindList && len(schemes.list) == 0:
		d.fail(schemes, "annotation_schemes", "", "is empty: the study asks nothing")
	case schemes != nil && schemes.kind == kindList:
		d.checkSchemes(schemes.list)
	}
}

func (d *decoder) checkFiles(root *node, c *Config) {
	files := root.get("data_files")
	if files == nil || files.kind == kindList && len(files.list) == 0 {
		others := []string{"data_directory", "data_sources", "batch_assignment"}
		if !slices.ContainsFunc(others, func(key string) bool { return root.get(key) != nil }) {
			d.fail(files, "data_files", "", "is missing: name the files with the study's items")
		}
	} else if files.kind == kindList {
		for i, n := range files.list {
			d.checkFile(n, "data_files["+strconv.Itoa(i)+"]", c)
		}
	}
	if n := root.get("data_directory"); n != nil && n.kind == kindText {
		if s, err := os.Stat(c.resolve(c.TaskPath(), c.DataDirectory)); err != nil || !s.IsDir() {
			d.fail(n, "data_directory", "", "is no folder%s", named(n, c.resolve(c.TaskPath(), c.DataDirectory)))
		}
	}
}

func (d *decoder) checkFile(n *node, at string, c *Config) {
	if encoding := n.get("encoding"); encoding != nil && encoding.kind == kindText {
		if _, err := decoderOf(encoding.text); err != nil {
			d.fail(encoding, at+".encoding", "", "is no encoding that is known; save the file as utf-8")
		}
	}
	if p := n.get("path"); p != nil {
		n = p
	}
	if n.kind != kindText {
		return // It was refused as it was read.
	}
	path := c.DataPath(DataFile{Path: n.text})
	s, err := os.Stat(path)
	switch format := dataFormats[suffix(path)]; {
	case err != nil && os.IsNotExist(err):
		d.fail(n, at, "", "is a file that does not exist%s", named(n, path))
	case err != nil:
		d.fail(n, at, "", "is a file that cannot be read%s", named(n, path))
	case s.IsDir():
		d.fail(n, at, "", "is a folder%s; name the files in it", named(n, path))
	case format == formatParquet:
		d.fail(n, at, "", "is a parquet file, which is not read here; write it as .jsonl")
	case format == 0:
		d.fail(n, at, "", "is of a kind that cannot be read; data files are .json, .jsonl, .csv or .tsv")
	}
}

// named adds a path to a message, unless an environment variable holds it.
func named(n *node, path string) string {
	if n.env {
		return ""
	}
	return ": " + printable(path)
}

//go:embed config_tool_types.txt
var toolTypes string

var schemeTypes = strings.Fields(toolTypes)

func (d *decoder) checkSchemes(schemes []*node) {
	first := map[string]int{}
	for i, n := range schemes {
		at := "annotation_schemes[" + strconv.Itoa(i) + "]"
		if n.kind != kindMap {
			continue // It was refused as it was read.
		}
		if name := n.get("name"); name == nil {
			d.fail(n, at+".name", "", "is missing")
		} else if earlier, twice := first[name.text]; twice {
			d.fail(name, at+".name", "", "is already the name of annotation_schemes[%d]", earlier)
		} else {
			first[name.text] = i
		}
		if t := n.get("annotation_type"); t == nil {
			d.fail(n, at+".annotation_type", "", "is missing")
		} else {
			d.checkType(n, t, at)
		}
	}
}

// checkType checks what a scheme's type needs to have labels.
func (d *decoder) checkType(n, t *node, at string) {
	labels, size := n.get("labels"), n.get("size")
	switch {
	case !slices.Contains(schemeTypes, t.text):
		d.warn(t, at+".annotation_type", d.suggest(t.text, schemeTypes), "is no type that the annotation tool has")
	case slices.Contains([]string{"radio", "select", "multiselect"}, t.text) && labels == nil:
		d.fail(n, at+".labels", "", "is missing")
	case t.text == "likert" && labels == nil && size == nil:
		d.fail(n, at+".size", "", "is missing, and so are labels")
	case t.text == "likert" && size != nil && size.kind == kindInt:
		if points, _ := intOf(size.text); points < 2 || points > 1000 {
			d.fail(size, at+".size", "", "must be 2 or more, and 1000 or less")
		}
	}
	if labels == nil || labels.kind != kindList || !slices.Contains([]string{"radio", "select", "multiselect", "likert"}, t.text) {
		return
	}
	if len(labels.list) == 0 {
		d.fail(labels, at+".labels", "", "is empty")
	}
	seen := map[string]bool{}
	for i, l := range labels.list {
		if name := l.get("name"); name != nil {
			l = name
		}
		if text := pythonText(l); l.kind <= kindDate && seen[text] {
			d.warn(l, at+".labels["+strconv.Itoa(i)+"]", "", "is the same label as an earlier one")
		} else {
			seen[text] = true
		}
	}
}
