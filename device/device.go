// Package device describes an open Vulkan device in the terms of kernels: what it can do, how it
// computes, and how one kernel is run on it. It joins vkrt, spirv and the numerics probe, which do not
// know each other.
package device

import (
	"fmt"
	"strings"

	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/spirv"
	"nxvk/vkrt"
)

// Target is what generators and the emitter may know of the device behind info. Its Num is the zero
// value, the most cautious one, until Probe has run.
func Target(info vkrt.Info) kernel.Target {
	t := kernel.Target{
		Class:  class(info.Class),
		Vendor: info.VendorID,
		F64:    info.F64 && info.I64, // what is written out for f64 works on its bits
		I64:    info.I64,
		Mem8:   info.Storage8, Mem16: info.Storage16,
		MaxShared:      int(info.MaxShared),
		MaxInvocations: int(info.MaxInvocations),
		MaxGroups:      info.MaxGroups,
		Subgroup:       int(info.Subgroup),
		PreserveF32:    info.SignedZeroInfNan32,
		PreserveF64:    info.SignedZeroInfNan64,
	}
	t.SlowF64 = t.F64 && slowF64(info)
	return t
}

func class(c vkrt.Class) kernel.Class {
	switch c {
	case vkrt.ClassCPU:
		return kernel.CPU
	case vkrt.ClassIntegrated:
		return kernel.Integrated
	}
	return kernel.Discrete
}

// Vendors of PCI devices.
const (
	vendorAMD    = 0x1002
	vendorNVIDIA = 0x10de
)

// slowF64 reports whether f64 arithmetic is far below half of f32's rate: so on all consumer GPUs. NVIDIA's
// and AMD's data-centre parts are known by name; processors are not slow.
func slowF64(info vkrt.Info) bool {
	switch {
	case info.Class == vkrt.ClassCPU:
		return false
	case info.VendorID == vendorNVIDIA:
		return !named(info.Name, "H200", "H100", "H800", "GH200", "B200", "A100", "A30", "A800", "V100", "P100", "GV100", "GP100")
	case info.VendorID == vendorAMD:
		return !named(info.Name, "MI100", "MI210", "MI250", "MI250X", "MI300A", "MI300X", "MI325X")
	}
	return true
}

// named reports whether one of the words of name is a model.
func named(name string, models ...string) bool {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ' ' || r == '-' }) {
		for _, m := range models {
			if word == m {
				return true
			}
		}
	}
	return false
}

// Probe learns how d computes (shaders.Probe), and yields its Target with that in Num.
func Probe(d *vkrt.Device) (kernel.Target, error) {
	t := Target(d.Info())
	s := d.NewStream()
	run := func(k *kernel.Kernel, t kernel.Target, grid [3]uint32, args []kernel.Bind) error {
		return Run(d, s, k, t, grid, args)
	}
	num, err := shaders.Probe(t, run)
	if err == nil {
		num.ShortLoops, err = shaders.ProbeLoops(t, run)
	}
	if err != nil {
		return t, fmt.Errorf("device %s: %w", d.Info().Name, err)
	}
	t.Num = num
	return t, nil
}

// Run runs k once, emitted for t, over grid workgroups, on s, and waits for it. The Bufs of args go to
// buffers of their own on the device, and those that k writes come back from there. Arguments that
// share memory on the host do not share it on the device.
func Run(d *vkrt.Device, s *vkrt.Stream, k *kernel.Kernel, t kernel.Target, grid [3]uint32, args []kernel.Bind) error {
	if len(args) != len(k.Args) {
		return fmt.Errorf("kernel %s: run with %d arguments, it has %d", k.Name, len(args), len(k.Args))
	}
	words, err := spirv.Emit(k, t)
	if err != nil {
		return err
	}
	p, err := d.Pipeline(k.Name, words)
	if err != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	table := make([]uint64, 1, len(args)+1)
	var uses []vkrt.Use
	bufs := make([]*vkrt.Buffer, len(args))
	defer func() {
		for _, b := range bufs {
			if b != nil {
				b.Release()
			}
		}
	}()
	for i, a := range k.Args {
		if a.Kind == kernel.ArgScalar {
			table = append(table, args[i].Bits)
			continue
		}
		b, err := d.Alloc(uint64(max(1, len(args[i].Buf))))
		if err != nil {
			return fmt.Errorf("kernel %s: argument %d: %w", k.Name, i, err)
		}
		bufs[i] = b
		if err := s.Upload(b, 0, args[i].Buf); err != nil {
			return fmt.Errorf("kernel %s: argument %d: %w", k.Name, i, err)
		}
		table = append(table, b.Addr())
		uses = append(uses, vkrt.Use{Buf: b, Write: a.Write})
	}
	if err := s.Dispatch(p, grid, table, uses); err != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	var failed error
	for i, a := range k.Args {
		if a.Kind != kernel.ArgPtr || !a.Write {
			continue
		}
		err := s.Read(bufs[i], 0, uint64(len(args[i].Buf)), func(data []byte, err error) {
			if copy(args[i].Buf, data); err != nil && failed == nil {
				failed = err
			}
		})
		if err != nil {
			return fmt.Errorf("kernel %s: argument %d: %w", k.Name, i, err)
		}
	}
	if err := s.Wait(); err != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	if failed != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, failed)
	}
	return nil
}
