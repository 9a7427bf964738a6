package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nxvk/dispatch"
	"nxvk/graph"
	"nxvk/lower"
	"nxvk/vkrt"
)

// described is what info prints as JSON.
type described struct {
	Wire     int             `json:"wire"`
	Devices  []vkrt.Info     `json:"devices"`
	Chosen   int             `json:"chosen"` // index into devices; -1: none
	Error    string          `json:"error,omitempty"`
	Numerics map[string]bool `json:"numerics,omitempty"`
	Memory   *vkrt.MemStats  `json:"memory,omitempty"`
	Cache    cacheInfo       `json:"cache"`
}

type cacheInfo struct {
	Dir   string `json:"dir"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// info describes the devices of this machine, opens the one that serve would use and asks it what its
// arithmetic does.
func info(args []string) error {
	f := flag.NewFlagSet("info", flag.ContinueOnError)
	asJSON := f.Bool("json", false, "print JSON")
	program := f.String("program", "", "print what the graphs of a `recording` become on this device")
	if err := flags(f, args, 0, "info [--json] [--program FILE]"); err != nil {
		return err
	}
	if *program != "" {
		return programs(*program)
	}
	d := described{Wire: dispatch.Version, Chosen: -1}
	devices, err := vkrt.Devices()
	if err != nil {
		return err
	}
	d.Devices = devices
	l := logger()
	p, err := open(l, logTo(l))
	if err != nil {
		d.Error = err.Error()
	} else {
		defer p.device.Close()
		mem := p.device.Memory()
		d.Chosen, d.Numerics, d.Memory = p.device.Info().Index, dispatch.NumericsOf(p.target), &mem
	}
	d.Cache = cacheState()
	if *asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return errors.Join(e.Encode(d), err)
	}
	d.print()
	return err // of the device that would be used: there is none
}

// programs prints each graph of a recording with the program that it becomes: kernels, buffers, steps.
func programs(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	l := logger()
	p, err := open(l, logTo(l))
	if err != nil {
		return err
	}
	defer p.device.Close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	return dispatch.Graphs(in, func(g *graph.Graph) {
		fmt.Fprintf(out, "%v\n", g)
		low, err := lower.Lower(g, p.target)
		if err != nil {
			fmt.Fprintf(out, "not on this device: %v\n\n", err)
			return
		}
		fmt.Fprintf(out, "%v\n", low)
	})
}

func cacheState() cacheInfo {
	c := cacheInfo{Dir: cacheDir()}
	if c.Dir == "" {
		return c
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return c
	}
	for _, e := range entries {
		if st, err := os.Stat(filepath.Join(c.Dir, e.Name())); err == nil && st.Mode().IsRegular() {
			c.Files++
			c.Bytes += st.Size()
		}
	}
	return c
}

func (d described) print() {
	for _, i := range d.Devices {
		mark := " "
		if i.Index == d.Chosen {
			mark = "*"
		}
		fmt.Printf("%s %d: %s\n", mark, i.Index, i.Name)
		row := func(name, format string, args ...any) {
			fmt.Printf("    %-12s %s\n", name, fmt.Sprintf(format, args...))
		}
		row("class", "%v, vendor %s (%#x), device %#x", i.Class, i.Vendor, i.VendorID, i.DeviceID)
		row("driver", "%s %s, Vulkan %s", i.Driver, i.DriverInfo, i.API)
		if len(i.Missing) > 0 {
			row("unusable", "lacks %s", strings.Join(i.Missing, ", "))
			continue
		}
		row("types", "%s", yes("f64", i.F64, "f16", i.F16, "int64", i.I64, "int16", i.I16, "int8", i.I8,
			"8-bit memory", i.Storage8, "16-bit memory", i.Storage16))
		if len(i.Disabled) > 0 {
			row("disabled", "%s, by %s", strings.Join(i.Disabled, ", "), vkrt.DisableVar)
		}
		row("float", "%s", yes("signed zero, inf and nan kept f32", i.SignedZeroInfNan32, "f64", i.SignedZeroInfNan64,
			"subnormals kept f32", i.DenormPreserve32, "f64", i.DenormPreserve64))
		row("groups", "%d invocations, %d KiB shared, subgroups of %d, %v groups", i.MaxInvocations, i.MaxShared>>10, i.Subgroup, i.MaxGroups)
		for n, h := range i.Heaps {
			where := "host"
			if h.DeviceLocal {
				where = "device"
			}
			row(fmt.Sprintf("heap %d", n), "%.1f GiB, %s", float64(h.Size)/(1<<30), where)
		}
		row("transfers", "%s", map[bool]string{true: "straight into mapped device memory", false: "through staging"}[i.DeviceLocalHostVisible])
		row("timestamps", "%v", i.Timestamps)
		if i.Index != d.Chosen {
			continue
		}
		n := d.Numerics
		row("numerics", "%s", yes("correctly rounded: f32 divide", n["div_f32"], "f32 sqrt", n["sqrt_f32"], "f64 divide", n["div_f64"], "f64 sqrt", n["sqrt_f64"]))
		row("", "%s", yes("fused multiply-add f32", n["fuse_f32"], "f64", n["fuse_f64"], "subnormals flushed f32", n["flush_f32"], "f64", n["flush_f64"],
			"slow f64", n["slow_f64"], "loops end after 65,535 rounds", n["short_loops"]))
		row("memory", "at most %.1f GiB for tensors", float64(d.Memory.Limit)/(1<<30))
	}
	if d.Error != "" {
		fmt.Printf("  none is used: %s\n", d.Error)
	}
	fmt.Printf("  cache: %s, %d files, %.1f MiB\n", orNone(d.Cache.Dir), d.Cache.Files, float64(d.Cache.Bytes)/(1<<20))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// yes lists names with whether they hold.
func yes(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		word := "no"
		if pairs[i+1].(bool) {
			word = "yes"
		}
		parts = append(parts, fmt.Sprintf("%s %s", pairs[i], word))
	}
	return strings.Join(parts, ", ")
}
