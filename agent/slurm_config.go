package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"potato/api"
)

// SlurmConfig are the settings of a slurm backend that concern the job (C5), as a JSON object: in the line that starts a
// hosted agent, and in the file of --slurm-config.
type SlurmConfig struct {
	JobPython     string            `json:"job_python,omitempty"`      // interpreter on the compute nodes; empty: as python
	Prelude       []string          `json:"prelude,omitempty"`         // lines that the job runs before the worker
	PollIntervalS float64           `json:"poll_interval_s,omitempty"` // between two looks at the queue; 0: 10
	QueueTimeoutS float64           `json:"queue_timeout_s,omitempty"` // longest wait in the scheduler's queue; 0: none
	Detach        bool              `json:"detach,omitempty"`          // an agent whose server is lost leaves the job alone
	Env           map[string]string `json:"env,omitempty"`             // of scheduler commands and of the job (C8)

	Partition     string   `json:"partition,omitempty" sbatch:"partition"`
	Account       string   `json:"account,omitempty" sbatch:"account"`
	QOS           string   `json:"qos,omitempty" sbatch:"qos"`
	GRES          string   `json:"gres,omitempty" sbatch:"gres"`
	GPUsPerNode   string   `json:"gpus_per_node,omitempty" sbatch:"gpus-per-node"`
	Nodes         string   `json:"nodes,omitempty" sbatch:"nodes"`
	NTasksPerNode int      `json:"ntasks_per_node,omitempty" sbatch:"ntasks-per-node"`
	CPUsPerTask   int      `json:"cpus_per_task,omitempty" sbatch:"cpus-per-task"`
	Mem           string   `json:"mem,omitempty" sbatch:"mem"`
	MemPerGPU     string   `json:"mem_per_gpu,omitempty" sbatch:"mem-per-gpu"`
	Time          string   `json:"time,omitempty" sbatch:"time"`
	Constraint    string   `json:"constraint,omitempty" sbatch:"constraint"`
	NodeList      string   `json:"nodelist,omitempty" sbatch:"nodelist"`
	Exclude       string   `json:"exclude,omitempty" sbatch:"exclude"`
	Reservation   string   `json:"reservation,omitempty" sbatch:"reservation"`
	Exclusive     bool     `json:"exclusive,omitempty" sbatch:"exclusive"`
	Nice          *int     `json:"nice,omitempty" sbatch:"nice"`
	Licenses      string   `json:"licenses,omitempty" sbatch:"licenses"`
	Deadline      string   `json:"deadline,omitempty" sbatch:"deadline"`
	Requeue       *bool    `json:"requeue,omitempty" sbatch:"requeue"` // nil: as the cluster does
	Signal        string   `json:"signal,omitempty" sbatch:"signal"`
	MailUser      string   `json:"mail_user,omitempty" sbatch:"mail-user"`
	MailType      string   `json:"mail_type,omitempty" sbatch:"mail-type"`
	SbatchArgs    []string `json:"sbatch_args,omitempty"` // passed as they are, after the others
}

const defaultPollInterval = 10 * time.Second

func (c SlurmConfig) pollInterval() time.Duration {
	if c.PollIntervalS <= 0 {
		return defaultPollInterval
	}
	return seconds(c.PollIntervalS)
}

// Flags are the flags of sbatch that the settings become, in the order of C5, with sbatch_args last.
func (c SlurmConfig) Flags() []string {
	var flags []string
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("sbatch")
		if name == "" || v.Field(i).IsZero() {
			continue
		}
		switch value := reflect.Indirect(v.Field(i)); {
		case value.Kind() != reflect.Bool:
			flags = append(flags, fmt.Sprintf("--%s=%v", name, value.Interface()))
		case value.Bool():
			flags = append(flags, "--"+name)
		default: // only a pointer gets here
			flags = append(flags, "--no-"+name)
		}
	}
	return append(flags, c.SbatchArgs...)
}

// reservedFlags are those that the submission sets itself or that would make something else of it than one job that is waited for.
var reservedFlags = []string{
	"--array", "-a", "--chdir", "-D", "--error", "-e", "--export", "--export-file", "--input", "-i", "--job-name", "-J", "--open-mode", "--output", "-o",
	"--parsable", "--quiet", "-Q", "--test-only", "--wait", "-W", "--wrap",
}

// Check says what is wrong with settings that sbatch would not tell.
func (c SlurmConfig) Check() error {
	for _, arg := range c.SbatchArgs {
		name, _, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "--") && len(arg) > 2 { // -a0-2
			name = arg[:2]
		}
		if slices.Contains(reservedFlags, name) {
			return api.Invalidf("validation_failed", "sbatch_args may not have %s, which the submission itself needs otherwise", name).
				WithHint("take it out of `sbatch_args`")
		}
	}
	for _, line := range c.Prelude {
		if strings.ContainsAny(line, "\n\r\x00") {
			return api.Invalidf("validation_failed", "a line of prelude has a line break in it: %q", cut(line, 80)).WithHint("write it as two lines of `prelude`")
		}
	}
	for name := range c.Env {
		if !isVariable(name) {
			return api.Invalidf("validation_failed", "env names %q, which is no name of a variable", cut(name, 80)).
				WithHint("letters, digits and underscores, and no digit first")
		}
	}
	return nil
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// ReadSlurmConfig reads the file of --slurm-config (Q9). What is wrong with it is one sentence.
func ReadSlurmConfig(path string) (SlurmConfig, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return SlurmConfig{}, api.Invalidf("slurm_config", "the SLURM settings cannot be read: %v", err).WithHint("--slurm-config names a JSON file").WithCause(err)
	}
	c, err := parseSlurmConfig(b)
	if err != nil {
		e := api.AsError(err)
		e.Message = filepath.Base(path) + ": " + e.Message
		return SlurmConfig{}, e
	}
	return c, nil
}

func parseSlurmConfig(b []byte) (SlurmConfig, error) {
	var c SlurmConfig
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &raw); err != nil {
		return c, api.Invalidf("slurm_config", "this is no JSON object of SLURM settings: %v", err).
			WithHint(`it looks like {"partition": "gpu", "gres": "gpu:1", "time": "04:00:00"}`)
	}
	fields := map[string]reflect.Type{}
	t := reflect.TypeFor[SlurmConfig]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[name] = t.Field(i).Type
	}
	var unknown []string
	for key, value := range raw {
		kind, known := fields[key]
		switch {
		case !known:
			unknown = append(unknown, key)
		case kind.Kind() == reflect.String && isNumber(value): // mem: 32000, nodes: 2
			raw[key] = json.RawMessage(strconv.Quote(string(value)))
		}
	}
	if len(unknown) > 0 {
		return c, unknownKeys(unknown, fields)
	}
	whole, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(whole, &c)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return c, api.Invalidf("slurm_config", "%s must be %s and not a %s", wrong.Field, inWords(wrong.Type), wrong.Value)
	}
	if err != nil {
		return c, err
	}
	return c, c.Check()
}

func isNumber(b json.RawMessage) bool {
	var n json.Number
	return json.Unmarshal(b, &n) == nil && !bytes.HasPrefix(b, []byte(`"`)) && n != ""
}

func unknownKeys(unknown []string, fields map[string]reflect.Type) error {
	slices.Sort(unknown)
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	var said []string
	for _, key := range unknown {
		text := fmt.Sprintf("%q", cut(clean([]byte(key)), 80))
		if meant := api.Suggest(key, names); meant != "" {
			text += fmt.Sprintf(" (did you mean %q?)", meant)
		}
		said = append(said, text)
	}
	what := "is no SLURM setting"
	if len(said) > 1 {
		what = "are no SLURM settings"
	}
	return api.Invalidf("slurm_config", "%s %s", strings.Join(said, ", "), what).
		WithHint("it takes the keys of a slurm backend that concern the job, see docs/config-keys.md")
}

func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return inWords(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list of texts"
	case reflect.Map:
		return "an object of texts"
	}
	return "a text"
}
