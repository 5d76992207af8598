package project

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"potato/api"
)

// Config is a study's config.yaml (C1). Keys of the published annotation tool that the server does not read are not
// here: they are accepted and left alone.
//
// The tags of these types are the only list of the keys: Load decodes by them and the documentation's key tables are
// made from them. `yaml` is the key, `doc` its sentence, `default` its value when absent or null, `rule` what its value
// must be, `on` the types of backends that take it, `sbatch` the flag that it becomes, `accept` what is taken beside the
// field's own type because the annotation tool takes it.
type Config struct {
	AnnotationTaskName  string         `yaml:"annotation_task_name" accept:"scalar" doc:"Name of the study"`
	TaskDir             string         `yaml:"task_dir" default:"." doc:"Folder that data files are looked for in, relative to the config file"`
	DataFiles           []DataFile     `yaml:"data_files" doc:"The study's items: JSON, JSON lines, CSV or TSV files"`
	DataDirectory       string         `yaml:"data_directory" doc:"Folder whose data files are read too"`
	ItemProperties      ItemProperties `yaml:"item_properties" doc:"Which fields of an item hold its id and its text"`
	OutputAnnotationDir string         `yaml:"output_annotation_dir" doc:"Folder of the annotators' labels, relative to task_dir"`
	MediaDirectory      string         `yaml:"media_directory" default:"media" doc:"Folder of images, audio and video, relative to task_dir"`
	AdminAPIKey         Secret         `yaml:"admin_api_key" accept:"scalar" doc:"Key of the admin's page and API; at least 16 characters"`
	AnnotationSchemes   []Scheme       `yaml:"annotation_schemes" doc:"The questions that annotators answer"`
	Adjudication        Adjudication   `yaml:"adjudication" doc:"Decisions on items whose annotators disagree; they win over votes"`
	ModelTraining       ModelTraining  `yaml:"model_training" doc:"What this server does"`
	Validation          Validation     `yaml:"validation" doc:"Only the validate command reads it"`
	Debug               bool           `yaml:"debug" doc:"Gives requests from this machine admin access; never for a server that others reach"`

	// File is the path that Load was given and Dir its folder, made absolute.
	File string `yaml:"-"`
	Dir  string `yaml:"-"`
}

// DataFile is one file of items. In the config it is a path or a map with these keys.
type DataFile struct {
	Path     string `yaml:"path" doc:"The file, relative to task_dir"`
	Encoding string `yaml:"encoding" default:"utf-8" doc:"Encoding of the file"`
}

// ItemProperties name the fields of an item.
type ItemProperties struct {
	IDKey   string `yaml:"id_key" accept:"scalar" doc:"Field that identifies an item"`
	TextKey string `yaml:"text_key" accept:"scalar" doc:"Field with the text"`
}

// Scheme is one question of the study as the config puts it.
type Scheme struct {
	AnnotationType  string  `yaml:"annotation_type" doc:"radio, select, multiselect, likert and so on"`
	Name            string  `yaml:"name" accept:"scalar" doc:"Identifies the scheme"`
	Description     string  `yaml:"description" accept:"scalar" doc:"The question"`
	Labels          []Label `yaml:"labels" doc:"The answers, in order"`
	Size            int     `yaml:"size" doc:"likert: number of points of the scale, named 1 to size"`
	HasFreeResponse bool    `yaml:"has_free_response" accept:"truthy" doc:"Annotators may write an answer of their own"`
	MaxChoices      int     `yaml:"max_choices" doc:"Most answers an annotator may tick; 1 makes a multiselect single-label"`
	MaxSelections   int     `yaml:"max_selections" doc:"The same for the types that call it so"`
	Mode            string  `yaml:"mode" doc:"pairwise: binary, scale or multi_dimension"`
	SourceField     string  `yaml:"source_field" doc:"Field of the item that the scheme speaks of"`
}

// Label is one answer of a scheme. In the config it is a text, a number, a boolean, or a map with a name. Name is what
// annotators' files hold: numbers and booleans as the published tool writes them (1, 2.5, True).
type Label struct {
	Name     string `yaml:"name" accept:"scalar" doc:"The answer"`
	KeyValue string `yaml:"key_value" accept:"scalar" doc:"Key on the keyboard, for the annotation tool"`
}

// Adjudication says where decisions on disputed items are kept.
type Adjudication struct {
	Enabled      bool   `yaml:"enabled" doc:"Read the decisions"`
	OutputSubdir string `yaml:"output_subdir" default:"adjudication" doc:"Folder of decisions.json, below output_annotation_dir"`
}

// Validation holds what the validate command may pass over (V4).
type Validation struct {
	Acknowledge []string `yaml:"acknowledge" doc:"Parts of warnings, at least 12 characters each, that --strict lets pass"`

	entries  []acknowledgement
	problems []api.Problem
}

// Secret is a text that is never printed, logged or put into JSON.
type Secret string

const hidden = "[hidden]"

// String hides the text from %s and %v.
func (s Secret) String() string { return hidden }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return hidden }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Reveal returns the text, for comparing.
func (s Secret) Reveal() string { return string(s) }

// Weak tells whether the text is no protection: missing, short, the one of the examples, or the name of an environment
// variable that is not set (K1).
func (s Secret) Weak() bool { return len(s) < 16 || s == "change-me" || envForm.MatchString(string(s)) }

// Text is a scalar kept as it is written in the file: time: 12:00:00 is 43200 to a YAML 1.1 reader and "12:00:00" here.
type Text string

// Seconds turns a number of seconds from the config into a duration; 0, which an absent limit is, stays 0.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// TaskPath is the study's folder: task_dir.
func (c *Config) TaskPath() string { return c.resolve(c.Dir, c.TaskDir) }

// OutputPath is the folder of the annotators' labels: output_annotation_dir.
func (c *Config) OutputPath() string { return c.resolve(c.TaskPath(), c.OutputAnnotationDir) }

// TrainingPath holds database, lock and runs: training_dir, or training below the annotators' labels.
func (c *Config) TrainingPath() string {
	if c.ModelTraining.TrainingDir != "" {
		return c.resolve(c.Dir, home(c.ModelTraining.TrainingDir))
	}
	return filepath.Join(c.OutputPath(), "training")
}

// TrainersPath is the folder of the study's own trainers, or empty.
func (c *Config) TrainersPath() string {
	if c.ModelTraining.TrainersDir == "" {
		return ""
	}
	return c.resolve(c.Dir, home(c.ModelTraining.TrainersDir))
}

// PythonPath is the interpreter of local runs: a path, or a name to look for on PATH.
func (c *Config) PythonPath() string {
	python := c.ModelTraining.Python
	if !strings.ContainsRune(python, filepath.Separator) {
		return python
	}
	return c.resolve(c.Dir, home(python))
}

// home puts the account's home in place of a leading ~/, as people write it. The keys that the annotation tool reads as
// well are left as that reads them.
func home(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	dir, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(dir, rest)
}

// DataPath is the place of one of the study's data files.
func (c *Config) DataPath(f DataFile) string { return c.resolve(c.TaskPath(), f.Path) }

// MediaPath is the folder of the study's media.
func (c *Config) MediaPath() string { return c.resolve(c.TaskPath(), c.MediaDirectory) }

func (c *Config) resolve(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
