package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/spirv"
	"nxvk/vkrt"
)

// TargetOf is what kernel generators may know of a device; Num is left to Numerics.
func TargetOf(i vkrt.Info) kernel.Target {
	t := kernel.Target{
		Class: kernel.Integrated, Vendor: i.VendorID,
		F64: i.F64, I64: i.I64, Mem8: i.I8 && i.Storage8, Mem16: i.I16 && i.Storage16,
		MaxShared: int(i.MaxShared), MaxInvocations: int(i.MaxInvocations), MaxGroups: i.MaxGroups,
		Subgroup:    int(i.Subgroup),
		PreserveF32: i.SignedZeroInfNan32, PreserveF64: i.SignedZeroInfNan64,
	}
	switch i.Class {
	case vkrt.ClassDiscrete:
		t.Class = kernel.Discrete
	case vkrt.ClassCPU:
		t.Class = kernel.CPU
	}
	// Only processors, and the large cards of vendors that build them for it, compute f64 at half of
	// f32's rate; no feature tells, so all others count as slow.
	t.SlowF64 = t.F64 && t.Class != kernel.CPU
	return t
}

// probeVersion changes with what Probe asks.
const probeVersion = 1

// Numerics is what the device's arithmetic does, found by the probe, or by an earlier one with the same
// driver. cacheDir is the folder of the pipeline cache; "" keeps nothing.
func Numerics(d *vkrt.Device, t kernel.Target, cacheDir string, log func(level, message string)) (kernel.Numerics, error) {
	i := d.Info()
	id := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s %s %#x %#x", probeVersion, i.DeviceUUID, i.DriverUUID, i.DriverInfo, i.Name, i.VendorID, i.DeviceID))
	path := filepath.Join(cacheDir, "numerics-"+hex.EncodeToString(id[:12])+".json")
	if cacheDir != "" {
		var n kernel.Numerics
		if b, err := os.ReadFile(path); err == nil {
			if err = json.Unmarshal(b, &n); err == nil {
				return n, nil
			}
			log("warning", fmt.Sprintf("numerics: %s is discarded: %v", path, err))
		}
	}
	n, err := shaders.Probe(t, deviceRunner(d))
	if err != nil || cacheDir == "" {
		return n, err
	}
	if err := keep(path, n); err != nil {
		log("warning", fmt.Sprintf("numerics: not kept: %v", err))
	}
	return n, nil
}

// keep writes v under path, whole or not at all.
func keep(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".numerics-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// deviceRunner runs kernels on d as the interpreter does: buffers go there and come back.
func deviceRunner(d *vkrt.Device) shaders.Runner {
	s := d.NewStream()
	return func(k *kernel.Kernel, t kernel.Target, grid [3]uint32, args []kernel.Bind) error {
		words, err := spirv.Emit(k, t)
		if err != nil {
			return err
		}
		pipe, err := d.Pipeline(k.Name, words)
		if err != nil {
			return err
		}
		table := make([]uint64, 1, len(args)+1)
		var uses []vkrt.Use
		var bufs []*vkrt.Buffer
		defer func() {
			for _, b := range bufs {
				b.Release()
			}
		}()
		var failed error
		for i, a := range args {
			if k.Args[i].Kind == kernel.ArgScalar {
				table = append(table, a.Bits)
				continue
			}
			b, err := d.Alloc(uint64(len(a.Buf)))
			if err != nil {
				return err
			}
			bufs = append(bufs, b)
			if err := s.Upload(b, 0, a.Buf); err != nil {
				return err
			}
			table = append(table, b.Addr())
			uses = append(uses, vkrt.Use{Buf: b, Write: k.Args[i].Write})
		}
		if err := s.Dispatch(pipe, grid, table, uses); err != nil {
			return err
		}
		j := 0
		for i, a := range args {
			if k.Args[i].Kind == kernel.ArgScalar {
				continue
			}
			if k.Args[i].Write {
				err := s.Read(bufs[j], 0, uint64(len(a.Buf)), func(data []byte, err error) {
					if err != nil {
						failed = err
					}
					copy(a.Buf, data)
				})
				if err != nil {
					return err
				}
			}
			j++
		}
		if err := s.Wait(); err != nil {
			return err
		}
		return failed
	}
}
