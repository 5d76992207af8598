package project

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"potato/api"
	"potato/trainers"
)

// check checks what the keys of one backend mean together (V1, V3).
func (b *Backend) check(d *decoder, e entry, at string) {
	if e.value.get("heartbeat_timeout_s") == nil {
		b.HeartbeatTimeoutS = 0 // The default is model_training's own, which load puts in.
	}
	if b.JobPython == "" {
		b.JobPython = b.Python
	}
	reached := b.Type == api.BackendSSH || b.Type == api.BackendSlurm
	if reached && e.value.get("host") == nil {
		d.fail(e.key, at+".host", "", "is missing: the machine that the server logs in to")
	}
	if b.Type != api.BackendSlurm {
		return
	}
	dir := e.value.get("remote_dir")
	switch {
	case dir == nil:
		b.RemoteDir = ""
		d.fail(e.key, at+".remote_dir", "", "is missing: a slurm backend needs a folder on storage that the compute nodes share")
	case localToNode(dir.text):
		d.fail(dir, at+".remote_dir", "", "is under /tmp or /var/tmp, which each node has for itself; it must be on storage that the compute nodes share")
	}
	if t := e.value.get("time"); t != nil && holdsLong(t.text) {
		d.warn(t, at+".time", "", "is %s. A job that holds a GPU for more than 6 hours is long on a shared cluster; check its policy", t.text)
	}
	if e.value.get("mem") != nil && e.value.get("mem_per_gpu") != nil {
		d.fail(e.value.get("mem_per_gpu"), at+".mem_per_gpu", "", "cannot stand beside mem: sbatch takes one of them")
	}
}

// localToNode tells whether a remote folder is one that every node has for itself. Remote paths have slashes.
func localToNode(dir string) bool {
	dir = path.Clean(dir)
	for _, local := range []string{"/tmp", "/var/tmp"} {
		if dir == local || strings.HasPrefix(dir, local+"/") {
			return true
		}
	}
	return false
}

// checkTraining checks what model_training says of other parts of the config.
func (d *decoder) checkTraining(root *node, c *Config) {
	training := root.get(trainingKey)
	if training == nil || training.kind != kindMap {
		return
	}
	retrain := training.get("auto_retrain")
	d.checkBackendName(training.get("backend"), trainingKey+".backend", c)
	d.checkBackendName(retrain.get("backend"), trainingKey+".auto_retrain.backend", c)
	d.checkBackendName(retrain.get("fallback"), trainingKey+".auto_retrain.fallback", c)
	d.checkPlaces(training.get("max_concurrent_runs"), c)
	if root.get("phases") == nil {
		d.checkSchemaNames(training.get("writeback").get("schemas"), trainingKey+".writeback.schemas", c)
		d.checkSchemaNames(retrain.get("schemas"), trainingKey+".auto_retrain.schemas", c)
	}
	for _, key := range []string{"trainer", "schemas"} {
		if c.ModelTraining.AutoRetrain.Enabled && (retrain.get(key) == nil || len(retrain.get(key).list)+len(retrain.get(key).text) == 0) {
			d.warn(retrain, trainingKey+".auto_retrain", "", "is enabled and has no %s, so it never trains", key)
		}
	}
	if n := training.get("trainers_dir"); n != nil && c.ModelTraining.TrainersDir != "" {
		d.checkTrainersDir(n, c)
	}
}

func (d *decoder) checkBackendName(n *node, at string, c *Config) {
	if n == nil || n.kind == kindList || n.kind == kindMap {
		return
	}
	if names := c.ModelTraining.BackendNames(); !slices.Contains(names, n.text) {
		d.fail(n, at, d.suggest(n.text, names), "names no backend; there is %s", someOf(names))
	}
}

// someOf lists names for a message, not all of them where there are very many.
func someOf(names []string) string {
	const most = 20
	if len(names) <= most {
		return printable(strings.Join(names, ", "))
	}
	return printable(strings.Join(names[:most], ", ")) + fmt.Sprintf(" and %d more", len(names)-most)
}

func (d *decoder) checkPlaces(n *node, c *Config) {
	if n == nil || n.kind != kindMap {
		return
	}
	names := append(c.ModelTraining.BackendNames(), "default")
	known, there := map[string]bool{}, someOf(names)
	for _, name := range names {
		known[name] = true
	}
	for _, e := range n.entries {
		if !known[e.key.text] {
			d.fail(e.key, join(trainingKey+".max_concurrent_runs", e.key.text), d.suggest(e.key.text, names), "names no backend; there is %s", there)
		}
	}
}

func (d *decoder) checkSchemaNames(n *node, at string, c *Config) {
	if n == nil || n.kind != kindList {
		return
	}
	var names []string
	for _, s := range c.AnnotationSchemes {
		names = append(names, s.Name)
	}
	for i, item := range n.list {
		if item.kind == kindText && len(names) > 0 && !slices.Contains(names, item.text) {
			d.fail(item, at+"["+strconv.Itoa(i)+"]", d.suggest(item.text, names), "names an annotation scheme that the study does not have")
		}
	}
}

// checkTrainersDir refuses a folder of trainers that others could put code into: the server runs what lies there.
func (d *decoder) checkTrainersDir(n *node, c *Config) {
	const at = trainingKey + ".trainers_dir"
	dir := c.TrainersPath()
	s, err := os.Stat(dir)
	rel, relErr := filepath.Rel(c.OutputPath(), dir)
	switch {
	case err != nil || !s.IsDir():
		d.fail(n, at, "", "is no folder%s", named(n, dir))
	case relErr == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)):
		d.fail(n, at, "", "lies in output_annotation_dir, where annotators' input is written; keep code elsewhere")
	case s.Mode().Perm()&0o002 != 0:
		d.fail(n, at, "", "is a folder that everybody may write to; take that away with chmod o-w")
	case trainers.CheckDir(dir, c.OutputPath()) != nil:
		// Its own words name the folder, which may come from the environment.
		d.fail(n, at, "", "is not safe to run code from: others may write to it, to a file in it or to a folder above it")
	}
}
