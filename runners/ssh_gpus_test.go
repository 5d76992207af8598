package runners

import (
	"strings"
	"testing"

	"potato/api"
)

const (
	twoA100 = "0, NVIDIA A100-SXM4-80GB, GPU-5c89, 81920, 80994, 0, 8.0, 535.161.08\n1, NVIDIA A100-SXM4-80GB, GPU-9f3c, 81920, 12, 100, 8.0, 535.161.08\n"
	mixed   = "0, Tesla K80, GPU-a, 11441, 11400, 0, 3.7, 470.1\n1, NVIDIA L4, GPU-b, 23034, 9000, 3, 8.9, 470.1\n2, NVIDIA L4, GPU-c, 23034, 9000, 1, 8.9, 470.1\n"
	gb10    = "0, NVIDIA GB10, GPU-1111, [N/A], [N/A], 0, 12.1, 580.95.05\n"
)

// Which GPU a run gets, or why none (H3, H12, T32): the answers are those of real drivers.
func TestChooseGPUs(t *testing.T) {
	modern := torchFacts{Installed: true, Archs: strings.Fields("sm_50 sm_80 sm_86 sm_90 compute_90")}
	old := torchFacts{Installed: true, Archs: []string{"sm_90"}}
	for name, c := range map[string]struct {
		wanted string
		least  int64
		smi    smiAnswer
		torch  torchFacts
		taken  string
		want   string // what a run gets, or the error
		code   string
		warns  bool
	}{
		"most free":              {"auto", 2000, smiAnswer{Out: twoA100}, modern, "", "GPU 0 (NVIDIA A100-SXM4-80GB)", "", false},
		"held by another run":    {"auto", 2000, smiAnswer{Out: twoA100}, modern, "GPU-5c89", "No GPU has 2000 MB free", "no_gpu_free", false},
		"too little free":        {"auto", 90000, smiAnswer{Out: twoA100}, modern, "", "No GPU has 90000 MB free", "no_gpu_free", false},
		"the idle one of two":    {"auto", 2000, smiAnswer{Out: mixed}, modern, "", "GPU 2 (NVIDIA L4)", "", false},
		"no torch, no marks":     {"auto", 2000, smiAnswer{Out: mixed}, torchFacts{}, "", "GPU 0 (Tesla K80)", "", false},
		"pinned":                 {"1", 2000, smiAnswer{Out: twoA100}, modern, "", "GPU 1 (NVIDIA A100-SXM4-80GB)", "", false},
		"two pinned":             {"0,1", 2000, smiAnswer{Out: twoA100}, modern, "", "GPU 0 (NVIDIA A100-SXM4-80GB), GPU 1 (NVIDIA A100-SXM4-80GB)", "", false},
		"pinned, not there":      {"7", 2000, smiAnswer{Out: twoA100}, modern, "", "GPU 7 is not on gpu.example.org (it has 0, 1)", "gpu_missing", false},
		"pinned without any":     {"0", 2000, smiAnswer{Code: 127}, modern, "", "GPU 0 is not on gpu.example.org (it has none)", "gpu_missing", false},
		"pinned, no kernels":     {"0", 2000, smiAnswer{Out: mixed}, modern, "", "This host's torch has no kernels for GPU 0 (Tesla K80)", "gpu_unsupported", false},
		"none wanted":            {"none", 2000, smiAnswer{Code: 9, Out: "NVIDIA-SMI has failed"}, modern, "", "the CPU", "", false},
		"no kernels at all":      {"auto", 2000, smiAnswer{Out: twoA100}, old, "", "This host's torch has no kernels for any of its GPUs", "gpu_unsupported", false},
		"an addition failed":     {"auto", 2000, smiAnswer{Out: twoA100}, torchFacts{Installed: true, Broken: []int{0, 1}}, "", "This host's torch has no kernels for any of its GPUs", "gpu_unsupported", false},
		"newer than PTX":         {"auto", 2000, smiAnswer{Out: gb10}, modern, "", "GPU 0 (NVIDIA GB10)", "", true},
		"free memory unknown":    {"auto", 2000, smiAnswer{Out: gb10 + "1, NVIDIA L4, GPU-b, 23034, 100, 3, 8.9, 470.1\n"}, modern, "", "GPU 0 (NVIDIA GB10)", "", true},
		"unknown only if needed": {"auto", 2000, smiAnswer{Out: gb10 + "1, NVIDIA L4, GPU-b, 23034, 9000, 3, 8.9, 470.1\n"}, modern, "", "GPU 1 (NVIDIA L4)", "", false},
		"MIG": {"auto", 2000, smiAnswer{Out: "0, NVIDIA A100-SXM4-80GB, GPU-5c89, 81920, 36537, [N/A], 8.0, 535.161.08"}, modern, "",
			"GPU 0 (NVIDIA A100-SXM4-80GB)", "", false},
		"no permission": {"auto", 2000, smiAnswer{Out: "0, NVIDIA A100, GPU-5c89, [Insufficient Permissions], [Insufficient Permissions], [N/A], 8.0, 535.1"}, modern, "",
			"GPU 0 (NVIDIA A100)", "", true},
		"old driver":         {"auto", 500, smiAnswer{Out: "0, GeForce GT 640, GPU-2222, 981, 900, [Not Supported], [Not Supported], 390.157"}, modern, "", "GPU 0 (GeForce GT 640)", "", false},
		"old, no such field": {"auto", 500, smiAnswer{Out: "0, GeForce GT 640, GPU-2222, 981, 900, [Not Supported]"}, modern, "", "GPU 0 (GeForce GT 640)", "", false},
		"a comma in a name":  {"auto", 500, smiAnswer{Out: "0, Odd, named, GPU-2222, 981, 900, 0, 8.0, 390.157"}, modern, "", "GPU 0 (Odd, named)", "", false},
		"not installed":      {"auto", 2000, smiAnswer{Code: 127}, modern, "", "the CPU", "", false},
		"no devices":         {"auto", 2000, smiAnswer{Code: 6, Out: "No devices were found"}, modern, "", "the CPU", "", false},
		"driver not loaded":  {"auto", 2000, smiAnswer{Code: 9, Out: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n\n"}, modern, "", "nvidia-smi on gpu.example.org failed: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "gpu_probe_failed", false},
		"driver mismatch":    {"auto", 2000, smiAnswer{Code: 18, Out: "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144"}, modern, "", "nvidia-smi on gpu.example.org failed: Failed to initialize NVML: Driver/library version mismatch", "gpu_probe_failed", false},
		"says nothing":       {"auto", 2000, smiAnswer{Code: 255}, modern, "", "nvidia-smi on gpu.example.org failed: exit status 255", "gpu_probe_failed", false},
		"hangs":              {"auto", 2000, smiAnswer{Silent: true}, modern, "", "nvidia-smi on gpu.example.org failed: it is not answering", "gpu_probe_failed", false},
		"hangs, CPU wanted":  {"none", 2000, smiAnswer{Silent: true}, modern, "", "the CPU", "", false},
		"garbage":            {"auto", 2000, smiAnswer{Out: "<html>\x1b[2J"}, modern, "", "nvidia-smi on gpu.example.org failed: <html> [2J", "gpu_probe_failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseGPUs("gpu.example.org", c.wanted, c.least, c.smi, c.torch, map[string]bool{c.taken: c.taken != ""})
			if err != nil {
				if e := api.AsError(err); e.Message != c.want || e.Code != c.code || e.Hint == "" {
					t.Errorf("got %s: %s (%s), want %s: %s", e.Code, e.Message, e.Hint, c.code, c.want)
				}
				return
			}
			if got.text() != c.want || c.code != "" || (len(got.Warnings) > 0) != c.warns {
				t.Errorf("got %s with %q, want %s %s", got.text(), got.Warnings, c.want, c.code)
			}
		})
	}
}
