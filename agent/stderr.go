package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

const (
	tailBytes = 64 << 10
	tailLines = 200 // of the worker's stderr that are searched for a cause
	lastLines = 20  // and that are shown (T30)
	lineBytes = 2000
)

// cause is a failure that shows in what libraries print.
type cause struct {
	texts   []string // all of them, anywhere in the tail; the first one's line is quoted
	code    string
	message string
	hint    string
}

// causes are searched in this order.
var causes = []cause{
	{
		[]string{"CUDA out of memory"}, "gpu_out_of_memory", "The GPU ran out of memory",
		"lower the batch size or sequence length, or take a GPU with more free memory",
	},
	{
		[]string{"OutOfMemoryError"}, "gpu_out_of_memory", "The GPU ran out of memory",
		"lower the batch size or sequence length, or take a GPU with more free memory",
	},
	{
		[]string{"no kernel image is available"}, "gpu_unsupported", "The installed torch has no kernels for this GPU",
		"install a torch built for this GPU, or train on another one",
	},
	{
		[]string{"is not compatible with the current PyTorch installation"}, "gpu_unsupported", "The installed torch has no kernels for this GPU",
		"install a torch built for this GPU, or train on another one",
	},
	{
		[]string{"CUDA driver version is insufficient"}, "gpu_unsupported", "The GPU's driver is too old for the installed torch",
		"update the driver, or install a torch built for an older CUDA",
	},
	{
		[]string{"NVML: Driver/library version mismatch"}, "gpu_probe_failed", "The GPU's driver was updated and is not loaded yet",
		"restart the machine, or reload the driver",
	},
	{
		[]string{"nvrtc: error"}, "worker_failed", "CUDA's run-time compiler could not be loaded",
		"torch and its nvidia-cuda-nvrtc are for different CUDA versions: install the nvidia-cuda-nvrtc that matches the torch build, or point `python` at another interpreter",
	},
	{
		[]string{"No CUDA GPUs are available"}, "gpu_missing", "There is no GPU for this worker",
		"train with device: auto or cpu, or on a machine with a GPU",
	},
	{
		[]string{"ModuleNotFoundError: No module named"}, "missing_dependency", "A package is missing in the interpreter",
		"install the package, list it under `packages`, or point `python` at an interpreter that has it",
	},
	{
		[]string{"srun: error: Unable to"}, "worker_failed", "srun could not start the workers on the nodes of the job",
		"this cluster may forbid srun inside of jobs: ask its admins, or train on one node (`nodes: 1`)",
	},
	{
		[]string{"oom_kill event"}, "out_of_memory", "The machine ran out of memory and ended the worker",
		"train on fewer items or features, or on a machine with more memory",
	},
	{
		[]string{"Bus error", "DataLoader"}, "out_of_memory", "The machine's shared memory (/dev/shm) is too small for the data loader",
		"give it more shared memory (docker: --shm-size), or train with fewer loader workers",
	},
	{
		[]string{"MemoryError"}, "out_of_memory", "The worker ran out of memory",
		"train on fewer items or features, or on a machine with more memory",
	},
	{
		[]string{"No space left on device"}, "disk_full", "No space is left on the disk",
		"free some space there and train again",
	},
	{
		[]string{"Temporary failure in name resolution", "huggingface"}, "worker_failed", "The model could not be downloaded: this machine does not reach huggingface.co",
		"download the model beforehand and point HF_HOME at it, or name a folder as the model",
	},
	{
		[]string{"Illegal instruction"}, "worker_failed", "The processor lacks an instruction that a package was built for",
		"install a build of the package for older processors, or train on another machine",
	},
}

// causeIn finds the first known cause in the lines, and the line that shows it.
func causeIn(lines []string) (c cause, line string, ok bool) {
	all := strings.Join(lines, "\n")
	for _, c := range causes {
		found := true
		for _, text := range c.texts {
			found = found && strings.Contains(all, text)
		}
		if !found {
			continue
		}
		for _, l := range lines {
			if strings.Contains(l, c.texts[0]) {
				return c, strings.TrimSpace(l), true
			}
		}
	}
	return cause{}, "", false
}

// stderrTail is the end of the worker's stderr as clean lines.
func stderrTail(dir string) []string {
	f, err := os.Open(filepath.Join(dir, stderrFile))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	at := max(0, info.Size()-tailBytes)
	buf := make([]byte, info.Size()-at)
	n, err := readAt(f, buf, at)
	if err != nil {
		return nil
	}
	buf = buf[:n]
	if at > 0 { // the first line is only the end of one
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			buf = buf[i+1:]
		}
	}
	text := strings.TrimRight(clean(buf), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i := range lines {
		lines[i] = cut(lines[i], lineBytes)
	}
	return lines
}
