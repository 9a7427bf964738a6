// Package devtest runs kernels and plans on the device and in the interpreter, for the tests of other
// packages. Every module that it runs passes spirv-val first, where that tool is.
//
// The device is the best one, or the one that NXVK_DEVICE names. Where there is none, tests that need
// one are skipped, and a line that starts with SKIPPED says so once. With NXVK_VALIDATE=1 the
// validation layers watch, and each of their messages fails a test.
//
// Start reading at devtest.go (Open, Run, Both), then plan.go (RunPlan, Agree).
package devtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"nxvk/device"
	"nxvk/kernel"
	"nxvk/kernel/kerneltest"
	"nxvk/spirv"
	"nxvk/vkrt"
	"nxvk/vkrt/vk"
)

// Device is the open device of this test process. Tests may share it: its methods take turns.
type Device struct {
	Dev    *vkrt.Device
	Target kernel.Target // with the Num that the probe found

	*shared
}

type shared struct {
	mu     sync.Mutex
	stream *vkrt.Stream
	saying sync.Mutex
	said   []string // by the driver and the validation layers, since the last look
}

// As is the device with kernels emitted for another target, one that promises less.
func (d *Device) As(t kernel.Target) *Device { return &Device{d.Dev, t, d.shared} }

var theDevice struct {
	sync.Once
	d   *Device
	err error
}

// Open yields the device of this process, and opens it on the first call. It skips the test where there
// is none, and fails it where there is one that does not open or does not pass the probe.
func Open(tb testing.TB) *Device {
	tb.Helper()
	theDevice.Do(func() {
		theDevice.d, theDevice.err = open()
		if theDevice.d == nil && theDevice.err == nil {
			fmt.Println("SKIPPED: tests that need a Vulkan device: there is none")
		}
	})
	if theDevice.err != nil {
		tb.Fatal(theDevice.err)
	}
	if theDevice.d == nil {
		fmt.Println("SKIPPED", tb.Name(), "no Vulkan device")
		tb.SkipNow()
	}
	return theDevice.d
}

func open() (*Device, error) {
	// The loader reads these where Go does not see it: results of tests are cached by them.
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT"} {
		os.Getenv(name)
	}
	switch all, err := vkrt.Devices(); {
	case err == nil && len(all) > 0:
	case err == nil, errors.Is(err, vk.ErrNoLoader), errors.Is(err, vk.ErrNoDriver), errors.Is(err, vk.ErrNoDevice):
		return nil, nil
	default:
		return nil, err
	}
	d := &Device{shared: &shared{}}
	dev, err := vkrt.Open(vkrt.Options{
		Device:     os.Getenv("NXVK_DEVICE"),
		CacheDir:   "-",
		Validation: os.Getenv("NXVK_VALIDATE") == "1",
		Log:        d.log,
	})
	if err != nil {
		return nil, err
	}
	d.Dev = dev
	if d.Target, err = device.Probe(dev); err != nil {
		return nil, err
	}
	d.stream = dev.NewStream()
	fmt.Printf("device: %s, %s; %+v\n", dev.Info().Name, dev.Info().DriverInfo, d.Target.Num)
	return d, nil
}

func (d *Device) log(level, msg string) {
	if level == "error" || level == "warning" {
		d.saying.Lock()
		d.said = append(d.said, level+": "+msg)
		d.saying.Unlock()
	}
}

// listen fails the test for what the driver and the validation layers have said.
func (d *Device) listen(tb testing.TB) {
	tb.Helper()
	d.saying.Lock()
	defer d.saying.Unlock()
	for _, m := range d.said {
		tb.Error(m)
	}
	d.said = nil
}

// Machine is an interpreter that rounds Mad, and flushes, as the device does.
func (d *Device) Machine() *kernel.Machine { return &kernel.Machine{Num: d.Target.Num} }

// Run runs k on the device over grid workgroups. The Bufs of args are the inputs, and take the results.
func Run(tb testing.TB, k *kernel.Kernel, grid [3]uint32, args ...kernel.Bind) {
	tb.Helper()
	Open(tb).Run(tb, k, grid, args...)
}

// Run is the function Run, with k emitted for d.Target.
func (d *Device) Run(tb testing.TB, k *kernel.Kernel, grid [3]uint32, args ...kernel.Bind) {
	tb.Helper()
	d.Validate(tb, k)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := device.Run(d.Dev, d.stream, k, d.Target, grid, args); err != nil {
		tb.Fatal(err)
	}
	d.listen(tb)
}

// Both runs k on the device and in the interpreter, each on a copy of args, and fails the test unless
// they leave the same bytes (any NaN equals any NaN). It yields the device's copy.
func Both(tb testing.TB, k *kernel.Kernel, grid [3]uint32, args ...kernel.Bind) []kernel.Bind {
	tb.Helper()
	return Open(tb).Both(tb, k, grid, args...)
}

// Both is the function Both, with k emitted for d.Target.
func (d *Device) Both(tb testing.TB, k *kernel.Kernel, grid [3]uint32, args ...kernel.Bind) []kernel.Bind {
	tb.Helper()
	c := kerneltest.Case{Kernel: k, Grid: grid, Args: args}
	want, got := c.Clone(), c.Clone()
	// The interpreter first: a stray access would take the process down on the device.
	if err := d.Machine().Run(k, grid, want); err != nil {
		tb.Fatal(err)
	}
	d.Run(tb, k, grid, got...)
	if err := kerneltest.Same(k, got, want); err != nil {
		tb.Errorf("device and interpreter differ: %v", err)
	}
	return got
}

// Validate emits k and runs spirv-val on the module, once for each module.
func (d *Device) Validate(tb testing.TB, k *kernel.Kernel) {
	tb.Helper()
	words, err := spirv.Emit(k, d.Target)
	if err != nil {
		tb.Fatal(err)
	}
	if err := validate(words); err != nil {
		tb.Fatalf("kernel %s: %v\n%s", k.Name, err, k.Text())
	}
}
