package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"potato/store"
)

const agentConfig = `annotation_task_name: Review Sentiment
data_files: [reviews.json]
item_properties: {id_key: id, text_key: text}
output_annotation_dir: out
admin_api_key: an-admin-key-for-tests-only
annotation_schemes:
  - {annotation_type: radio, name: sentiment, description: Positive or negative?, labels: [positive, negative]}
model_training:
  enabled: true
  backends:
    lab-workstation: {type: agent}
    gpu: {type: ssh, host: gpu.example.org}
`

// agentStudy writes a study with an agent backend; what it returns is the config's path.
func agentStudy(t *testing.T, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	for name, text := range map[string]string{path: strings.NewReplacer(changes...).Replace(agentConfig), filepath.Join(dir, "reviews.json"): "[]"} {
		if err := os.WriteFile(path[:len(path)-len("config.yaml")]+filepath.Base(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// says runs a command and returns its exit code and what it said.
func says(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

var issued = regexp.MustCompile(`potato_[A-Z0-9]{52}`)

// K3: the text is the tutorial's, word for word.
func TestRegisterText(t *testing.T) {
	config := agentStudy(t)
	code, out, errs := says("training", "register", "lab-workstation", config)
	tokens := issued.FindAllString(out, -1)
	if code != exitOK || len(tokens) != 2 || tokens[0] != tokens[1] {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	want, err := os.ReadFile("testdata/register.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(out, tokens[0], "<token>"); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(errs, "cannot reach") {
		t.Errorf("it warned: %s", errs)
	}
	_, again, _ := says("training", "register", "lab-workstation", config)
	if issued.FindString(again) == tokens[0] {
		t.Error("registering again gave the same token")
	}
}

// K1: with a loopback address register and check warn, and say how to open it.
func TestAgentsThatCannotReachTheServer(t *testing.T) {
	config := agentStudy(t, "an-admin-key-for-tests-only", "change-me")
	_, _, errs := says("training", "register", "lab-workstation", config)
	if !strings.Contains(errs, "warning: agents on other machines cannot reach this server") || !strings.Contains(errs, "--host 0.0.0.0") {
		t.Errorf("register: %s", errs)
	}
	code, out, _ := says("training", "check", "lab-workstation", config)
	if code != exitOK || !strings.Contains(out, "warn  address: agents on other machines cannot reach this server") || !strings.Contains(out, "--host 0.0.0.0") {
		t.Errorf("check: %d, %s", code, out)
	}
	// A server that runs is what counts, not how it would be started.
	config = agentStudy(t)
	dir := filepath.Join(filepath.Dir(config), "out", "training")
	lock, err := store.LockDir(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for url, closed := range map[string]bool{"http://127.0.0.1:8000/admin/training": true, "http://localhost:8000/admin/training": false, "http://[::1]:8000/x": true} {
		if err := lock.Announce(url); err != nil {
			t.Fatal(err)
		}
		_, _, errs := says("training", "register", "lab-workstation", config)
		if strings.Contains(errs, "cannot reach this server") != closed {
			t.Errorf("%s: %q", url, errs)
		}
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// G7, K2: the token's record, before it was issued, before it was used, and after.
func TestCheckOfAnAgentBackend(t *testing.T) {
	config := agentStudy(t)
	code, out, _ := says("training", "check", "lab-workstation", config)
	if code != exitFailed || !strings.Contains(out, "no token issued yet") || !strings.Contains(out, "potato training register lab-workstation "+config) {
		t.Errorf("%d, %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(config), "out")); !os.IsNotExist(err) {
		t.Errorf("a check left something behind: %v", err)
	}
	_, out, _ = says("training", "register", "lab-workstation", config)
	token := issued.FindString(out)
	code, out, _ = says("training", "check", "lab-workstation", config)
	if code != exitOK || !strings.Contains(out, "warn  token: created ") || !strings.Contains(out, "last_seen: never") || strings.Contains(out, token) {
		t.Errorf("%d, %s", code, out)
	}
	db, err := store.Open(t.Context(), filepath.Join(filepath.Dir(config), "out", "training"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	record, err := db.TokenOf(t.Context(), "lab-workstation")
	if err == nil {
		now := float64(time.Now().Unix())
		err = db.SeeAgents(t.Context(), []store.AgentSeen{{Token: record.SHA256, Backend: "lab-workstation", AgentID: "a1", Host: "gpu-box", Version: "1.0", At: now}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, _ = says("training", "check", "lab-workstation", config, "--json")
	if code != exitOK || !strings.Contains(out, `"ok": true`) || !strings.Contains(out, "last_seen: "+time.Now().UTC().Format("2006-01-02")) || !strings.Contains(out, "a1 on gpu-box, version 1.0") {
		t.Errorf("%d, %s", code, out)
	}
}

func TestRegisterRefuses(t *testing.T) {
	config := agentStudy(t)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"another type":  {[]string{"gpu", config}, exitFailed, "gpu is a backend of type ssh, which needs no token"},
		"this machine":  {[]string{"local", config}, exitFailed, "local is this machine and needs no token"},
		"a misspelling": {[]string{"lab-workstatoin", config}, exitFailed, "did you mean lab-workstation?"},
		"no config":     {[]string{"lab-workstation", config + "x"}, exitFailed, "config.yamlx"},
		"no arguments":  {nil, exitUsage, "potato training register --help"},
	} {
		code, out, errs := says(append([]string{"training", "register"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d, %q, %q", name, code, out, errs)
		}
	}
}
