package agent

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// markerVar carries a job's random marker in every process of it, so that they can be found when all else is lost.
const markerVar = "POTATO_MARKER"

// passed are the variables that a worker inherits: what finds programs and libraries, caches, devices, the way out.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONNOUSERSITE",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "TOKENIZERS_PARALLELISM",
}

// passedPrefixes are families of such variables.
var passedPrefixes = []string{
	"LC_", "XDG_", "CONDA_", "PYENV_", "CUDA_", "NVIDIA_", "NCCL_", "ROCM_", "HIP_", "HSA_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "TORCH_",
	"PYTORCH_", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "SLURM_",
}

var secretWords = []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"}

// WorkerEnv is the environment a worker gets: the variables of this process that an interpreter and its libraries
// need, by an explicit list, without anything whose name speaks of a secret; then extra, NAME=value, which wins.
func WorkerEnv(extra ...string) []string {
	env := []string{"PYTHONUNBUFFERED=1", "MPLBACKEND=Agg"}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if inherited(name) {
			env = append(env, kv)
		}
	}
	return setEnv(env, extra...)
}

func inherited(name string) bool {
	upper := strings.ToUpper(name)
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(upper, w) }) {
		return false
	}
	return slices.Contains(passed, name) ||
		slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// ThreadEnv sets the variables that bound the threads of numeric libraries, before the interpreter starts (H4); 0 leaves
// them alone.
func ThreadEnv(env []string, n int) []string {
	if n <= 0 {
		return env
	}
	v := strconv.Itoa(n)
	return setEnv(env, "OMP_NUM_THREADS="+v, "MKL_NUM_THREADS="+v, "OPENBLAS_NUM_THREADS="+v)
}

// setEnv returns env with each NAME=value of over in place of an earlier one, in a fixed order.
func setEnv(env []string, over ...string) []string {
	values := map[string]string{}
	for _, kv := range slices.Concat(env, over) {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+"="+values[name])
	}
	return out
}
