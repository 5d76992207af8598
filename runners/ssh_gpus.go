package runners

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"potato/api"
)

// hostGPU is one line of nvidia-smi's answer. Nil is what the driver did not say.
type hostGPU struct {
	Index      int
	Name, UUID string
	TotalMB    *int64
	FreeMB     *int64
	Used       *int64 // percent
	Capability string // 8.0; empty when an old driver does not know it
	Driver     string
	NoKernels  bool // the torch there has none for it
}

// smiAnswer is what a host's nvidia-smi said.
type smiAnswer struct {
	Code   int // its exit status; 127 when there is none
	Out    string
	Silent bool // it did not answer in time
}

// notFound is the exit status of a shell that does not find a command.
const notFound = 127

// gpus reads the answer. An error means that there is an nvidia-smi and it cannot be asked (H12): that is not a host without
// GPUs.
func (a smiAnswer) gpus(host string) ([]hostGPU, error) {
	switch {
	case a.Silent:
		return nil, probeFailed(host, "it is not answering")
	case a.Code == notFound && strings.TrimSpace(a.Out) == "", strings.Contains(a.Out, "No devices were found"):
		return nil, nil
	case a.Code != 0:
		why := firstLine(a.Out)
		if why == "" {
			why = "exit status " + strconv.Itoa(a.Code)
		}
		return nil, probeFailed(host, why)
	}
	var list []hostGPU
	for line := range strings.Lines(a.Out) {
		if g, ok := readGPU(strings.TrimSpace(line)); ok {
			list = append(list, g)
		}
	}
	if len(list) == 0 && strings.TrimSpace(a.Out) != "" {
		return nil, probeFailed(host, firstLine(a.Out))
	}
	return list, nil
}

func probeFailed(host, why string) *api.Error {
	return WithHint(api.Unavailablef("gpu_probe_failed", "nvidia-smi on %s failed: %s", host, api.Printable(why)))
}

// readGPU reads index, name, uuid, total and free memory, utilisation, capability, driver; the last two may be missing. Names
// have no commas that anybody knows of; should one have, the fields are counted from the end.
func readGPU(line string) (hostGPU, bool) {
	f := strings.Split(line, ", ")
	for extra := len(f) - 8; extra > 0; extra-- {
		f[1] += ", " + f[2]
		f = slices.Delete(f, 2, 3)
	}
	if len(f) < 6 {
		return hostGPU{}, false
	}
	index, err := strconv.Atoi(strings.TrimSpace(f[0]))
	if err != nil {
		return hostGPU{}, false
	}
	g := hostGPU{Index: index, Name: api.Printable(f[1]), UUID: f[2], TotalMB: smiNumber(f[3]), FreeMB: smiNumber(f[4]), Used: smiNumber(f[5])}
	if len(f) > 6 && !strings.HasPrefix(f[6], "[") {
		g.Capability = strings.TrimSpace(f[6])
	}
	if len(f) > 7 && !strings.HasPrefix(f[7], "[") {
		g.Driver = strings.TrimSpace(f[7])
	}
	return g, true
}

// smiNumber is nil for [N/A], [Not Supported], [Insufficient Permissions] and whatever else is no number.
func smiNumber(text string) *int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// torchFacts are what the interpreter on a host says about its torch.
type torchFacts struct {
	Installed bool     `json:"installed"`
	Version   string   `json:"version"`
	Archs     []string `json:"archs"`  // sm_80, compute_90
	Error     string   `json:"error"`  // it cannot be imported
	Broken    []int    `json:"broken"` // GPUs on which one addition failed
	HIP       bool     `json:"hip"`
}

// mark says of each GPU whether torch has kernels for it. Without a torch, or one that says nothing, none is marked.
func (t torchFacts) mark(gpus []hostGPU) {
	for i := range gpus {
		g := &gpus[i]
		g.NoKernels = slices.Contains(t.Broken, g.Index) || g.Capability != "" && len(t.Archs) > 0 && !t.HIP && !hasKernels(t.Archs, g.Capability)
	}
}

// hasKernels: kernels run on their own major architecture from their minor one up, PTX is compiled for anything newer.
func hasKernels(archs []string, capability string) bool {
	major, minor, ok := strings.Cut(capability, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if !ok || errA != nil || errB != nil {
		return true
	}
	for _, arch := range archs {
		kind, text, _ := strings.Cut(arch, "_")
		text = strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz") // sm_90a
		n, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		switch major, minor := n/10, n%10; {
		case kind == "sm" && major == a && minor <= b:
			return true
		case kind == "compute" && (major < a || major == a && minor <= b):
			return true
		}
	}
	return false
}

// choice is what a run gets: the GPUs, none for the CPU.
type choice struct {
	GPUs     []hostGPU
	Warnings []string
}

// text is the choice for people.
func (c choice) text() string {
	if len(c.GPUs) == 0 {
		return "the CPU"
	}
	names := make([]string, len(c.GPUs))
	for i, g := range c.GPUs {
		names[i] = fmt.Sprintf("GPU %d (%s)", g.Index, g.Name)
	}
	return strings.Join(names, ", ")
}

// chooseGPUs decides by `gpus` and `min_free_gpu_mb` what a run gets on a host (H3, H12). taken are the UUIDs that another
// run holds.
func chooseGPUs(host, wanted string, minFreeMB int64, smi smiAnswer, torch torchFacts, taken map[string]bool) (choice, error) {
	if wanted == "none" {
		return choice{}, nil
	}
	gpus, err := smi.gpus(host)
	if err != nil {
		return choice{}, err
	}
	torch.mark(gpus)
	if wanted != "" && wanted != "auto" {
		return pinned(host, wanted, gpus)
	}
	if len(gpus) == 0 {
		return choice{}, nil
	}
	usable := slices.DeleteFunc(slices.Clone(gpus), func(g hostGPU) bool { return g.NoKernels })
	if len(usable) == 0 {
		return choice{}, noKernels(torch, gpus)
	}
	usable = slices.DeleteFunc(usable, func(g hostGPU) bool { return taken[g.UUID] })
	known := slices.DeleteFunc(slices.Clone(usable), func(g hostGPU) bool { return g.FreeMB == nil || *g.FreeMB < minFreeMB })
	if len(known) > 0 {
		best := slices.MinFunc(known, func(a, b hostGPU) int {
			return cmp.Or(cmp.Compare(*b.FreeMB, *a.FreeMB), cmp.Compare(orZero(a.Used), orZero(b.Used)), cmp.Compare(a.Index, b.Index))
		})
		return choice{GPUs: []hostGPU{best}}, nil
	}
	for _, g := range usable {
		if g.FreeMB == nil {
			return choice{GPUs: []hostGPU{g}, Warnings: []string{
				fmt.Sprintf("GPU %d (%s) does not say how much of its memory is free; it is taken since no other qualifies", g.Index, g.Name),
			}}, nil
		}
	}
	return choice{}, WithHint(api.Unavailablef("no_gpu_free", "No GPU has %d MB free", minFreeMB))
}

func pinned(host, wanted string, gpus []hostGPU) (choice, error) {
	c := choice{}
	for text := range strings.SplitSeq(wanted, ",") {
		index, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			continue // the config's rules let no such value through
		}
		at := slices.IndexFunc(gpus, func(g hostGPU) bool { return g.Index == index })
		if at < 0 {
			has := make([]string, len(gpus))
			for i, g := range gpus {
				has[i] = strconv.Itoa(g.Index)
			}
			return choice{}, WithHint(api.Unavailablef("gpu_missing", "GPU %d is not on %s (it has %s)", index, host, cmp.Or(strings.Join(has, ", "), "none")))
		}
		if gpus[at].NoKernels {
			return choice{}, unsupported(fmt.Sprintf("This host's torch has no kernels for GPU %d (%s)", index, gpus[at].Name))
		}
		c.GPUs = append(c.GPUs, gpus[at])
	}
	return c, nil
}

func noKernels(torch torchFacts, gpus []hostGPU) *api.Error {
	e := unsupported("This host's torch has no kernels for any of its GPUs")
	names := make([]string, len(gpus))
	for i, g := range gpus {
		names[i] = fmt.Sprintf("%s is sm_%s", g.Name, strings.ReplaceAll(g.Capability, ".", ""))
	}
	return e.WithHint("%s (%s; torch has %s)", e.Hint, strings.Join(names, ", "), strings.Join(torch.Archs, " "))
}

func unsupported(text string) *api.Error {
	return api.Unavailablef("gpu_unsupported", "%s", text).WithHint("install a torch built for those GPUs, or train on another host")
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
