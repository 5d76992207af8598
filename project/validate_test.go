package project_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

// studyLines is how many lines of a test's config stand before what it is about.
var studyLines = strings.Count(study, "\n")

// Each config has exactly the problems beside it; lines are counted from the line model_training stands in.
func TestProblemsOfModelTraining(t *testing.T) {
	const gpu = "  backends:\n    gpu:\n      type: ssh\n      host: h\n"
	const cluster = "  backends:\n    cluster:\n      type: slurm\n      host: h\n"
	const shared = cluster + "      remote_dir: /shared/x\n"
	for name, c := range map[string]struct{ config, want string }{
		"misspelt key":           {gpu + "      pyhton: /opt/x\n", "6:7 model_training.backends.gpu.pyhton is not a key of ssh backends -> python"},
		"misspelt at top":        {"  retain_run: 5\n", "2:3 model_training.retain_run is not a key of model_training -> retain_runs"},
		"misspelt in writeback":  {"  writeback: {schema: [a]}\n", "2:15 model_training.writeback.schema is not a key of model_training.writeback -> schemas"},
		"no such key":            {"  auto_retrain:\n    zzzzzzzz: 1\n", "3:5 model_training.auto_retrain.zzzzzzzz is not a key of model_training.auto_retrain"},
		"no host":                {"  backends:\n    gpu:\n      type: ssh\n", "3:5 model_training.backends.gpu.host is missing: the machine that the server logs in to"},
		"empty host":             {"  backends:\n    gpu:\n      type: ssh\n      host:\n", "3:5 model_training.backends.gpu.host is missing: the machine that the server logs in to"},
		"blank host":             {"  backends:\n    gpu: {type: ssh, host: a b}\n", "3:28 model_training.backends.gpu.host must not contain blanks"},
		"option as host":         {"  backends:\n    gpu: {type: ssh, host: -oProxyCommand=x}\n", "3:28 model_training.backends.gpu.host must not begin with -"},
		"no type":                {"  backends:\n    gpu: {host: h}\n", "3:5 model_training.backends.gpu.type is missing: ssh, slurm or agent"},
		"backend without keys":   {"  backends:\n    gpu:\n", "3:5 model_training.backends.gpu.type is missing: ssh, slurm or agent"},
		"misspelt type":          {"  backends:\n    gpu: {type: slrum, host: h}\n", "3:17 model_training.backends.gpu.type must be ssh, slurm or agent -> slurm"},
		"local type":             {"  backends:\n    gpu: {type: local}\n", "3:17 model_training.backends.gpu.type must be ssh, slurm or agent"},
		"backend is text":        {"  backends:\n    gpu: ssh\n", "3:10 model_training.backends.gpu must be a map of keys to values, not text"},
		"backends is a list":     {"  backends: [gpu]\n", "2:13 model_training.backends must be a map of names to backends, not a list"},
		"name local":             {"  backends:\n    local: {type: agent}\n", "3:5 model_training.backends.local is not free: a backend may not be named local"},
		"name default":           {"  backends:\n    default: {type: agent}\n", "3:5 model_training.backends.default is not free: a backend may not be named default"},
		"name that is a boolean": {"  backends:\n    on: {type: agent}\n", "3:5 model_training.backends has the key on, which YAML reads as true or false; put it in quotes"},
		"name with a slash":      {"  backends:\n    a/b: {type: agent}\n", "3:5 model_training.backends.a/b cannot be the name of a backend: use letters, digits, -, _ and ."},
		"key of slurm":           {gpu + "      time: nonsense\n", "6:7 model_training.backends.gpu.time is a key of slurm backends, not of ssh backends"},
		"gpus on slurm":          {shared + "      gpus: auto\n", "7:7 model_training.backends.cluster.gpus is a key of ssh backends, not of slurm backends; GPUs come from gres"},
		"packages on slurm":      {shared + "      packages: [a]\n", "7:7 model_training.backends.cluster.packages is a key of ssh backends, not of slurm backends; point job_python at an environment that the compute nodes have"},
		"host of an agent":       {"  backends:\n    ws: {type: agent, host: h}\n", "3:23 model_training.backends.ws.host is a key of ssh and slurm backends, not of agent backends"},
		"no remote_dir":          {cluster, "3:5 model_training.backends.cluster.remote_dir is missing: a slurm backend needs a folder on storage that the compute nodes share"},
		"unknown backend":        {"  backend: gpu-servr\n  backends: {gpu-server: {type: agent}}\n", "2:12 model_training.backend names no backend; there is local, gpu-server -> gpu-server"},
		"one of many backends": {
			"  backend: q\n  backends: {" + strings.Join(numbered(30, "b%02d: {type: agent}"), ", ") + "}\n",
			"2:12 model_training.backend names no backend; there is local, " + strings.Join(numbered(19, "b%02d"), ", ") + " and 11 more",
		},
		"unknown backend at all": {"  backend: gpu\n", "2:12 model_training.backend names no backend; there is local"},
		"default as a backend":   {"  backend: default\n", "2:12 model_training.backend names no backend; there is local"},
		"retrain backend":        {"  auto_retrain: {backend: gpu}\n", "2:27 model_training.auto_retrain.backend names no backend; there is local"},
		"fallback":               {"  auto_retrain: {fallback: loca}\n", "2:28 model_training.auto_retrain.fallback names no backend; there is local -> local"},
		"places of nobody":       {"  max_concurrent_runs: {loal: 1}\n", "2:25 model_training.max_concurrent_runs.loal names no backend; there is local, default -> local"},
		"no places":              {"  max_concurrent_runs: 0\n", "2:24 model_training.max_concurrent_runs must be 1 or more"},
		"places as text":         {"  max_concurrent_runs: many\n", "2:24 model_training.max_concurrent_runs must be a whole number, or a map of backends to whole numbers, not text"},
		"unknown scheme":         {"  writeback: {schemas: [sentimnt]}\n", "2:25 model_training.writeback.schemas[0] names an annotation scheme that the study does not have -> sentiment"},
		"negative":               {"  max_wall_seconds: -1\n", "2:21 model_training.max_wall_seconds must be more than 0"},
		"zero":                   {"  max_wall_seconds: 0\n", "2:21 model_training.max_wall_seconds must be more than 0"},
		"not a number":           {"  max_wall_seconds: .nan\n", "2:21 model_training.max_wall_seconds must be a number"},
		"infinite":               {"  max_wall_seconds: .inf\n", "2:21 model_training.max_wall_seconds must be a number"},
		"too large":              {"  max_wall_seconds: 99999999999\n", "2:21 model_training.max_wall_seconds must be 315360000 or less"},
		"beyond integers":        {"  split_seed: 99999999999999999999\n", "2:15 model_training.split_seed is out of range"},
		"fraction":               {"  retain_runs: 2.5\n", "2:16 model_training.retain_runs must be a whole number, not a number"},
		"number as text":         {"  retain_runs: \"5\"\n", "2:16 model_training.retain_runs must be a whole number, not text"},
		"word for a number":      {"  grace_seconds: soon\n", "2:18 model_training.grace_seconds must be a number, not text"},
		"no time to speak":       {"  heartbeat_timeout_s: 0.1\n", "2:24 model_training.heartbeat_timeout_s must be 1 or more"},
		"text for a boolean":     {"  enabled: \"yes\"\n", "2:12 model_training.enabled must be true or false, not text"},
		"number for a boolean":   {"  enabled: 1\n", "2:12 model_training.enabled must be true or false, not a whole number"},
		"text for a list":        {gpu + "      packages: torch\n", "6:17 model_training.backends.gpu.packages must be a list, not text"},
		"number in a list":       {"  packages: [a, 3]\n", "2:17 model_training.packages[1] must be text, not a whole number"},
		"hole in a list":         {"  packages: [a, ~]\n", "2:17 model_training.packages[1] is empty"},
		"list for text":          {"  python: [a]\n", "2:11 model_training.python must be text, not a list"},
		"empty text":             {"  python: ''\n", "2:11 model_training.python is empty"},
		"aggregation":            {"  aggregation: mean\n", "2:16 model_training.aggregation must be consensus or majority"},
		"aggregation misspelt":   {"  aggregation: majorty\n", "2:16 model_training.aggregation must be consensus or majority -> majority"},
		"device":                 {"  device: cdua\n", "2:11 model_training.device must be auto, cpu, mps, cuda or cuda:N with the GPU's number -> cuda"},
		"warm worker":            {"  warm_worker: true\n", "2:16 model_training.warm_worker must be auto or false"},
		"splits as a list":       {"  splits: [0.7, 0.3]\n", "2:11 model_training.splits must be a map of split names to shares, not a list"},
		"splits without train":   {"  splits: {foo: 1}\n", "2:11 model_training.splits gives nothing to train: its share must be more than 0"},
		"negative share":         {"  splits: {train: 1, val: -1}\n", "2:27 model_training.splits.val must be 0 or more"},
		"split named unlabeled":  {"  splits: {train: 1, unlabeled: 1}\n", "2:22 model_training.splits.unlabeled cannot be the name of a split: it becomes a file of letters, digits, - and _, and not unlabeled"},
		"split named a path":     {"  splits: {train: 1, ../x: 1}\n", "2:22 model_training.splits.../x cannot be the name of a split: it becomes a file of letters, digits, - and _, and not unlabeled"},
		"confidence":             {"  writeback: {min_confidence: 60}\n", "2:31 model_training.writeback.min_confidence must be 1 or less"},
		"quiet hours":            {"  auto_retrain: {quiet_hours: 25:00-3}\n", "2:31 model_training.auto_retrain.quiet_hours must be two times of the day such as 22:00-06:00"},
		"parameters":             {"  auto_retrain: {params: [a]}\n", "2:26 model_training.auto_retrain.params must be a map of keys to values, not a list"},
		"parameter not JSON":     {"  auto_retrain: {params: {a: .inf}}\n", "2:30 model_training.auto_retrain.params.a must be a number"},
		"trainers_dir":           {"  trainers_dir: /nowhere\n", "2:17 model_training.trainers_dir is no folder: /nowhere"},
		"gpus negative":          {gpu + "      gpus: -1\n", "6:13 model_training.backends.gpu.gpus must be auto, none, or GPU numbers such as \"0\" or \"0,1\""},
		"gpus twice":             {gpu + "      gpus: \"1,1\"\n", "6:13 model_training.backends.gpu.gpus names GPU 1 twice"},
		"port":                   {gpu + "      port: 70000\n", "6:13 model_training.backends.gpu.port must be 65535 or less"},
		"port zero":              {gpu + "      port: 0\n", "6:13 model_training.backends.gpu.port must be 1 or more"},
		"user with host":         {gpu + "      user: me@h\n", "6:13 model_training.backends.gpu.user is the account alone, without @ and host"},
		"transport":              {gpu + "      transport: ssh\n", "6:18 model_training.backends.gpu.transport must be auto, native or openssh"},
		"env name":               {gpu + "      env: {1X: a}\n", "6:13 model_training.backends.gpu.env.1X is not a name of an environment variable: letters, digits and _, not beginning with a digit"},
		"env name with a blank":  {gpu + "      env: {A B: a}\n", "6:13 model_training.backends.gpu.env.A B is not a name of an environment variable: letters, digits and _, not beginning with a digit"},
		"env value":              {gpu + "      env: {X: [secretvalue]}\n", "6:16 model_training.backends.gpu.env.X must be text, not a list"},
		"env as a list":          {gpu + "      env: [X=secretvalue]\n", "6:12 model_training.backends.gpu.env must be a map of keys to values, not a list"},
		"flag of two lines":      {shared + "      partition: \"a\\nb\"\n", "7:18 model_training.backends.cluster.partition must be one line without control characters"},
		"flag with a NUL":        {shared + "      account: \"a\\0\"\n", "7:16 model_training.backends.cluster.account must be one line without control characters"},
		"prelude of two lines":   {shared + "      prelude: [\"a\\nb\"]\n", "7:17 model_training.backends.cluster.prelude[0] must be one line without control characters"},
		"flag as a list":         {shared + "      gres: [gpu]\n", "7:13 model_training.backends.cluster.gres must be text, not a list"},
		"memory":                 {shared + "      mem: lots\n", "7:12 model_training.backends.cluster.mem must be a number with a unit such as 32G"},
		"memory twice":           {shared + "      mem: 1G\n      mem_per_gpu: 1G\n", "8:20 model_training.backends.cluster.mem_per_gpu cannot stand beside mem: sbatch takes one of them"},
		"nodes":                  {shared + "      nodes: 0\n", "7:14 model_training.backends.cluster.nodes must be a number of nodes, or least-most such as 1-2"},
		"time":                   {shared + "      time: 4h\n", "7:13 model_training.backends.cluster.time must be a time such as 30 (minutes), 04:00:00 or 1-12:00:00, or UNLIMITED"},
		"poll interval":          {shared + "      poll_interval_s: 0\n", "7:24 model_training.backends.cluster.poll_interval_s must be 1 or more"},
		"exclusive":              {shared + "      exclusive: user\n", "7:18 model_training.backends.cluster.exclusive must be true or false, not text"},
		"queue timeout":          {"  backends: {ws: {type: agent, queue_timeout_s: 0}}\n", "2:49 model_training.backends.ws.queue_timeout_s must be more than 0"},
		"error in an anchor":     {"  backends:\n    a: &a {type: ssh, host: h, port: 0}\n    b: *a\n", "3:38 model_training.backends.a.port must be 1 or more\n3:38 model_training.backends.b.port must be 1 or more"},
		"error in a merge":       {"  backends:\n    a: &a {type: ssh, host: h}\n    b:\n      <<: *a\n      pyhton: x\n", "6:7 model_training.backends.b.pyhton is not a key of ssh backends -> python"},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := project.Load(writeStudy(t, study+"model_training:\n"+c.config))
			var got []string
			for _, p := range r.Errors {
				p.Line -= studyLines
				got = append(got, found([]api.Problem{p})...)
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
			if s := strings.Join(got, " "); strings.Contains(s, "secretvalue") {
				t.Errorf("a value is printed: %s", s)
			}
		})
	}
	_, r := project.Load(writeStudy(t, study+"model_training: true\n"))
	if got, want := found(r.Errors), []string{"7:17 model_training must be a map of keys to values, not true or false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A slurm job reads its folder on another machine than the one that wrote it (V1).
func TestRemoteDirOfSlurm(t *testing.T) {
	const config = study + "model_training:\n  backends:\n    c: {type: slurm, host: h, remote_dir: \"%s\"}\n"
	for dir, local := range map[string]bool{
		"/tmp": true, "/tmp/": true, "/tmp/x": true, "/var/tmp": true, "/var/tmp/x": true, "/tmp/../tmp/x": true, "//tmp//x": true,
		"/shared/../tmp/x": true, "/./var/./tmp": true, "/var/../tmp": true,
		"/tmpx": false, "/shared/tmp": false, "/tmp/../shared": false, "~/x": false, "/var/tmpx/y": false, "/scratch/me": false,
	} {
		_, r := project.Load(writeStudy(t, strings.ReplaceAll(config, "%s", dir)))
		got := len(r.Errors) == 1 && strings.Contains(r.Errors[0].Message,
			"model_training.backends.c.remote_dir is under /tmp or /var/tmp, which each node has for itself")
		if got != local || !local && len(r.Errors) > 0 {
			t.Errorf("%s: got %q, want refused: %v", dir, found(r.Errors), local)
		}
	}
	if _, r := project.Load(writeStudy(t, study+"model_training:\n  backends:\n    g: {type: ssh, host: h, remote_dir: /tmp/x}\n")); len(r.Errors) > 0 {
		t.Errorf("an ssh backend may use /tmp: %q", found(r.Errors))
	}
}

func TestProblemsOfTheStudy(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no task name":         {"annotation_task_name: Reviews\n", "", "1:1 annotation_task_name is missing"},
		"no output":            {"output_annotation_dir: annotation_output\n", "", "1:1 output_annotation_dir is missing"},
		"no item properties":   {"item_properties: {id_key: id, text_key: text}\n", "", "1:1 item_properties is missing"},
		"properties as a list": {"{id_key: id, text_key: text}", "[id]", "3:18 item_properties must be a map of keys to values, not a list"},
		"no id_key":            {"id_key: id, ", "", "3:18 item_properties.id_key is missing"},
		"no text_key":          {", text_key: text", "", "3:18 item_properties.text_key is missing"},
		"no data":              {"data_files: [data/reviews.json]\n", "", "1:1 data_files is missing: name the files with the study's items"},
		"no data in the list":  {"[data/reviews.json]", "[]", "2:13 data_files is missing: name the files with the study's items"},
		"data as text":         {"[data/reviews.json]", "data/reviews.json", "2:13 data_files must be a list, not text"},
		"data as a number":     {"[data/reviews.json]", "[3]", "2:14 data_files[0] must be a path or a map with a path, not a whole number"},
		"data without a path":  {"[data/reviews.json]", "[{encoding: utf-8}]", "2:14 data_files[0].path is missing"},
		"data is a folder":     {"[data/reviews.json]", "[data]", "2:14 data_files[0] is a folder: DIR/data; name the files in it"},
		"data is no data":      {"[data/reviews.json]", "[config.yaml]", "2:14 data_files[0] is of a kind that cannot be read; data files are .json, .jsonl, .csv or .tsv"},
		"encoding":             {"[data/reviews.json]", "[{path: data/reviews.json, encoding: utf-9}]", "2:50 data_files[0].encoding is no encoding that is known; save the file as utf-8"},
		"data is not there":    {"[data/reviews.json]", "[data/nope.json]", "2:14 data_files[0] is a file that does not exist: DIR/data/nope.json"},
		"directory":            {"data_files: [data/reviews.json]", "data_directory: nope", "2:17 data_directory is no folder: DIR/nope"},
		"no schemes":           {"annotation_schemes:\n  - {annotation_type: radio, name: sentiment, description: How is it, labels: [positive, negative]}\n", "", "1:1 annotation_schemes is missing: the study asks nothing"},
		"empty schemes":        {"\n  - {annotation_type: radio, name: sentiment, description: How is it, labels: [positive, negative]}\n", " []\n", "5:21 annotation_schemes is empty: the study asks nothing"},
		"schemes as a map":     {"\n  - {annotation_type: radio, name: sentiment, description: How is it, labels: [positive, negative]}\n", " {a: b}\n", "5:21 annotation_schemes must be a list, not a map"},
		"scheme as text":       {"{annotation_type: radio, name: sentiment, description: How is it, labels: [positive, negative]}", "sentiment", "6:5 annotation_schemes[0] must be a map of keys to values, not text"},
		"scheme without name":  {"name: sentiment, ", "", "6:5 annotation_schemes[0].name is missing"},
		"scheme without type":  {"annotation_type: radio, ", "", "6:5 annotation_schemes[0].annotation_type is missing"},
		"no labels":            {", labels: [positive, negative]", "", "6:5 annotation_schemes[0].labels is missing"},
		"empty labels":         {"[positive, negative]", "[]", "6:79 annotation_schemes[0].labels is empty"},
		"labels as text":       {"[positive, negative]", "positive", "6:79 annotation_schemes[0].labels must be a list, not text"},
		"label without a name": {"[positive, negative]", "[{text: a}]", "6:80 annotation_schemes[0].labels[0].name is missing"},
		"label as a list":      {"[positive, negative]", "[[a]]", "6:80 annotation_schemes[0].labels[0] must be text or a map with a name, not a list"},
		"likert":               {"radio, name: sentiment, description: How is it, labels: [positive, negative]", "likert, name: q", "6:5 annotation_schemes[0].size is missing, and so are labels"},
		"likert of one":        {"radio, name: sentiment, description: How is it, labels: [positive, negative]", "likert, name: q, size: 1", "6:46 annotation_schemes[0].size must be 2 or more, and 1000 or less"},
		"likert in words":      {"radio, name: sentiment, description: How is it, labels: [positive, negative]", "likert, name: q, size: five", "6:46 annotation_schemes[0].size must be a whole number, not text"},
		"two of a name": {"negative]}\n", "negative]}\n  - {annotation_type: text, name: sentiment}\n",
			"7:35 annotation_schemes[1].name is already the name of annotation_schemes[0]"},
		"debug as text":         {"annotation_task_name", "debug: \"false\"\nannotation_task_name", "1:8 debug must be true or false, not text"},
		"key as a list":         {"annotation_task_name", "admin_api_key: [hunter2]\nannotation_task_name", "1:16 admin_api_key must be text, not a list"},
		"adjudication":          {"annotation_task_name", "adjudication: yes\nannotation_task_name", "1:15 adjudication must be a map of keys to values, not true or false"},
		"only phases":           {"annotation_schemes:", "phases:", ""},
		"only sources":          {"data_files: [data/reviews.json]", "data_sources: [{type: url}]", ""},
		"free text":             {"radio, name: sentiment, description: How is it, labels: [positive, negative]", "text, name: q", ""},
		"free response":         {"labels: [positive, negative]", "labels: [a], has_free_response: {instruction: Other}", ""},
		"number as name":        {"name: sentiment", "name: 12", ""},
		"number as key":         {"id_key: id", "id_key: 12", ""},
		"keys of other types":   {"labels: [positive, negative]", "labels: [a], size: [3, 4], max_choices: many, mode: {a: b}, source_field: 3", ""},
		"labels of other types": {"radio, name: sentiment, description: How is it, labels: [positive, negative]", "table_grid, name: q, labels: {a: b}, size: x", ""},
		"a path of two lines":   {"[data/reviews.json]", "[\"a\\nb\"]", "2:14 data_files[0] is a file that does not exist: DIR/a\ufffdb"},
		"other keys":            {"labels: [positive, negative]", "labels: [a], horizontal: true, foo: {bar: 1}", ""},
		"keys of another":       {"annotation_task_name", "ui: {a: 1}\nuser_config: [x]\nannotation_task_name", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(study, c.old) {
				t.Fatalf("the study does not contain %q", c.old)
			}
			path := writeStudy(t, strings.Replace(study, c.old, c.new, 1))
			_, r := project.Load(path)
			got := strings.ReplaceAll(strings.Join(found(r.Errors), "\n"), filepath.Dir(path), "DIR")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if strings.Contains(got, "hunter2") {
				t.Error("the key is printed")
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"top-level key":    {"annotation_task_nam: x\n", "7:1 annotation_task_nam is not a key of the config; it is ignored -> annotation_task_name"},
		"key of nobody":    {"zzzzzzzzzzzz: x\n", "7:1 zzzzzzzzzzzz is not a key of the config; it is ignored"},
		"number as key":    {"1: x\n", "7:1 1 is a whole number to YAML, not the name of a key; put it in quotes"},
		"secret as key":    {"{admin_api_key:hunter2: x}: y\n", ""},
		"key given twice":  {"debug: no\ndebug: no\n", "8:1 debug is given twice, in line 7 and in line 8; the last one counts"},
		"twice in a block": {"model_training:\n  retain_runs: 1\n  retain_runs: 2\n", "9:3 retain_runs is given twice, in line 8 and in line 9; the last one counts"},
		"variable unset":   {"admin_api_key: ${POTATO_TEST_UNSET}\n", "7:16 admin_api_key refers to the environment variable POTATO_TEST_UNSET, which is not set; the text is taken as it is"},
		"never trains":     {"model_training: {auto_retrain: {enabled: yes, trainer: a}}\n", "7:32 model_training.auto_retrain is enabled and has no schemas, so it never trains"},
		"long job":         {"model_training: {backends: {c: {type: slurm, host: h, remote_dir: /s, time: 12:00:00}}}\n", "7:77 model_training.backends.c.time is 12:00:00. A job that holds a GPU for more than 6 hours is long on a shared cluster; check its policy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := project.Load(writeStudy(t, study+c.config))
			if got := strings.Join(found(r.Warnings), "\n"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if strings.Contains(strings.Join(found(append(r.Warnings, r.Errors...)), " "), "hunter2") {
				t.Error("a secret is printed")
			}
		})
	}
	for old, c := range map[string]struct{ new, want string }{
		"radio":              {"radoi", "6:23 annotation_schemes[0].annotation_type is no type that the annotation tool has -> radio"},
		"positive, negative": {"a, b, a", "6:86 annotation_schemes[0].labels[2] is the same label as an earlier one"},
	} {
		_, r := project.Load(writeStudy(t, strings.Replace(study, old, c.new, 1)))
		if got := found(r.Warnings); !slices.Equal(got, []string{c.want}) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestParquetIsRefused(t *testing.T) {
	path := writeStudy(t, strings.Replace(study, "reviews.json", "reviews.parquet", 1))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "data", "reviews.parquet"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, r := project.Load(path)
	want := []string{"2:14 data_files[0] is a parquet file, which is not read here; write it as .jsonl"}
	if got := found(r.Errors); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Trainers are code that the server runs: their folder is not one that annotators' input or strangers reach.
func TestTrainersDir(t *testing.T) {
	path := writeStudy(t, study+"model_training: {trainers_dir: annotation_output/code}\n")
	dir := filepath.Join(filepath.Dir(path), "annotation_output", "code")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, r := project.Load(path)
	if got := found(r.Errors); len(got) != 1 || !strings.Contains(got[0], "lies in output_annotation_dir") {
		t.Errorf("got %q", got)
	}
	path = writeStudy(t, study+"model_training: {trainers_dir: data}\n")
	if err := os.Chmod(filepath.Join(filepath.Dir(path), "data"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, r = project.Load(path)
	if got := found(r.Errors); len(got) != 1 || !strings.Contains(got[0], "everybody may write to") {
		t.Errorf("got %q", got)
	}
	data := filepath.Join(filepath.Dir(path), "data")
	mine := filepath.Join(data, "mine.py")
	if err := errors.Join(os.Chmod(data, 0o700), os.WriteFile(mine, nil, 0o600), os.Chmod(mine, 0o666)); err != nil {
		t.Fatal(err)
	}
	_, r = project.Load(path)
	if got := found(r.Errors); len(got) != 1 || !strings.Contains(got[0], "others may write to it, to a file in it") {
		t.Errorf("a trainer that everybody may change: got %q", got)
	}
}

// numbered are n texts with their numbers in them.
func numbered(n int, format string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}
