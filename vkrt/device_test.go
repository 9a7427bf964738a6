package vkrt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"nxvk/vkrt/vk"
)

// openTest opens a device for a test, or skips where there is none. Warnings and errors that it logs fail the test.
func openTest(t testing.TB, o Options) *Device {
	t.Helper()
	if o.Device == "" {
		o.Device = os.Getenv("NXVK_DEVICE")
	}
	if o.CacheDir == "" {
		o.CacheDir = "-"
	}
	if o.Log == nil {
		var mu sync.Mutex
		done := false
		o.Log = func(level, msg string) {
			mu.Lock()
			defer mu.Unlock()
			if !done && (level == "error" || level == "warning") {
				t.Errorf("%s: %s", level, msg)
			}
		}
		t.Cleanup(func() { mu.Lock(); done = true; mu.Unlock() })
	}
	d, err := Open(o)
	if errors.Is(err, vk.ErrNoLoader) || errors.Is(err, vk.ErrNoDriver) || errors.Is(err, vk.ErrNoDevice) {
		fmt.Println("SKIPPED", t.Name(), err)
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func allocTest(t testing.TB, d *Device, n uint64) *Buffer {
	t.Helper()
	b, err := d.Alloc(n)
	must(t, err)
	return b
}

// words makes little-endian u32 data; word i is f(i).
func words(n int, f func(i int) uint32) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, f(i))
	}
	return b
}

// add records out[i] = in[i] + k for n words.
func add(t testing.TB, s *Stream, p *Pipeline, out, in *Buffer, n int, k uint32) {
	t.Helper()
	must(t, s.Dispatch(p, [3]uint32{uint32(n+63) / 64, 1, 1}, []uint64{0, in.Addr(), out.Addr(), uint64(n), uint64(k)},
		[]Use{{in, false}, {out, true}}))
}

func addPipeline(t testing.TB, d *Device) *Pipeline {
	t.Helper()
	p, err := d.Pipeline("add", addWords)
	must(t, err)
	return p
}

// expect reads n words of b in the stream's order; when they have come, each must be f(i).
func expect(t testing.TB, s *Stream, b *Buffer, n int, what string, f func(i int) uint32) *bool {
	t.Helper()
	seen := new(bool)
	must(t, s.Read(b, 0, uint64(4*n), func(data []byte, err error) {
		*seen = true
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if want := words(n, f); !bytes.Equal(data, want) {
			for i := range n {
				if got := binary.LittleEndian.Uint32(data[4*i:]); got != f(i) {
					t.Errorf("%s: word %d is %d, want %d", what, i, got, f(i))
					return
				}
			}
		}
	}))
	return seen
}

// variants runs a test with tensors mapped, where the device has such memory, and with staging forced.
func variants(t *testing.T, f func(t *testing.T, o Options)) {
	for _, staging := range []bool{false, true} {
		t.Run(map[bool]string{false: "default", true: "staging"}[staging], func(t *testing.T) {
			f(t, Options{staging: staging})
		})
	}
}

func TestInfo(t *testing.T) {
	infos, err := Devices()
	if err != nil {
		fmt.Println("SKIPPED TestInfo", err)
		t.Skip(err)
	}
	d := openTest(t, Options{})
	i := d.Info()
	if i.Name == "" || i.Class == ClassUnknown || i.API == "" || i.Driver == "" || !i.BufferAddress || !i.Timeline {
		t.Errorf("incomplete: %+v", i)
	}
	if i.MaxShared < 16<<10 || i.MaxInvocations < 128 || i.MaxGroups[0] < 65535 || i.MaxPush < 128 || i.Subgroup == 0 || len(i.Heaps) == 0 {
		t.Errorf("limits below the floor: %+v", i.Limits)
	}
	if i.Class == ClassCPU && !i.DeviceLocalHostVisible {
		t.Errorf("a cpu whose memory the host cannot see: %+v", i)
	}
	raw, err := json.Marshal(i)
	must(t, err)
	var back Info
	must(t, json.Unmarshal(raw, &back))
	if fmt.Sprint(back) != fmt.Sprint(i) {
		t.Errorf("JSON: %s\n%+v\n%+v", raw, back, i)
	}
	for _, want := range []string{`"f64":`, `"class":"`, `"max_shared":`, `"device_uuid":"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("JSON has no %s: %s", want, raw)
		}
	}
	t.Logf("%d devices; %s", len(infos), raw)
}

func TestChoose(t *testing.T) {
	all := []*physical{
		{Info: Info{Index: 0, Name: "llvmpipe (LLVM 15)", Class: ClassCPU}},
		{Info: Info{Index: 1, Name: "Intel(R) UHD 770", Class: ClassIntegrated}},
		{Info: Info{Index: 2, Name: "NVIDIA GeForce GT 640", Class: ClassDiscrete, Missing: []string{"timelineSemaphore"}}},
		{Info: Info{Index: 3, Name: "AMD Radeon RX 580", Class: ClassDiscrete}},
		{Info: Info{Index: 4, Name: "AMD Radeon VII", Class: ClassDiscrete}},
	}
	for _, c := range []struct {
		want string
		get  int
		err  string
	}{
		{"", 3, ""},
		{"0", 0, ""},
		{"4", 4, ""},
		{"uhd", 1, ""},
		{"radeon", 3, ""},
		{"VII", 4, ""},
		{"2", 0, "lacks timelineSemaphore"},
		{"geforce", 0, "lacks timelineSemaphore"},
		{"9", 0, `none matches "9"`},
		{"77", 0, `none matches "77"`}, // no part of "UHD 770"
		{"580", 3, ""},
		{"voodoo", 0, "AMD Radeon VII"},
	} {
		d, err := choose(all, c.want)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want an error with %q", c.want, err, c.err)
			}
		} else if err != nil || d.Index != c.get {
			t.Errorf("%q: device %v, %v; want %d", c.want, d, err, c.get)
		}
	}
	if _, err := choose(all[2:3], ""); !errors.Is(err, vk.ErrNoDevice) {
		t.Errorf("no usable device: %v", err)
	}
}

// TestChooseTypes holds the choice of memory against the memory types of real devices.
func TestChooseTypes(t *testing.T) {
	mem := func(flags ...vk.MemoryPropertyFlags) vk.PhysicalDeviceMemoryProperties {
		m := vk.PhysicalDeviceMemoryProperties{MemoryTypeCount: uint32(len(flags))}
		for i, f := range flags {
			m.MemoryTypes[i].PropertyFlags = f
		}
		return m
	}
	for _, c := range []struct {
		name                   string
		class                  Class
		mem                    vk.PhysicalDeviceMemoryProperties
		tensor, args, up, down uint32
		mapped, cached         bool
	}{
		{"lavapipe", ClassCPU, mem(local | host | cached), 0, 0, 0, 0, true, true},
		{"kepler", ClassDiscrete, mem(0, local, host, host|cached), 1, 2, 2, 3, false, false},
		{"nvidia with a window", ClassDiscrete, mem(0, local, host, host|cached, local|host), 1, 4, 2, 3, false, false},
		{"radv", ClassDiscrete, mem(local, host, local|host, host|cached, local|0xc0), 0, 2, 1, 3, false, false},
		{"intel integrated", ClassIntegrated, mem(local, local|host, local|host|cached), 2, 1, 1, 2, true, true},
		{"integrated, uncached", ClassIntegrated, mem(local, local|host), 1, 1, 1, 1, true, false},
		{"moltenvk", ClassIntegrated, mem(local, local|host|cached, local|vk.MemoryPropertyLazilyAllocatedBit), 1, 1, 1, 1, true, true},
	} {
		p := &physical{Info: Info{Class: c.class}, memory: c.mem}
		got := chooseTypes(p, false)
		if got.tensor.index != c.tensor || got.args.index != c.args || got.up.index != c.up || got.down.index != c.down || got.mapped != c.mapped || got.cached != c.cached {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestNoDriver: a loader without a driver says that, and what to install.
func TestNoDriver(t *testing.T) {
	if _, err := vk.Open(); err != nil {
		fmt.Println("SKIPPED TestNoDriver", err)
		t.Skip(err)
	}
	if runtime.GOOS != "linux" {
		fmt.Println("SKIPPED TestNoDriver: not Linux")
		t.Skip()
	}
	if os.Getenv("NXVK_TEST_NO_DRIVER") == "" { // the process keeps its drivers: ask another
		c := exec.Command(os.Args[0], "-test.run=^TestNoDriver$")
		none := filepath.Join(t.TempDir(), "none.json")
		c.Env = append(os.Environ(), "NXVK_TEST_NO_DRIVER=1", "VK_DRIVER_FILES="+none, "VK_ICD_FILENAMES="+none)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	_, err := Devices()
	if !errors.Is(err, vk.ErrNoDriver) || !strings.Contains(err.Error(), "install a driver") {
		t.Errorf("%v", err)
	}
	if _, err := Open(Options{}); !errors.Is(err, vk.ErrNoDriver) {
		t.Errorf("%v", err)
	}
}

// TestReopen: a device can be opened and closed again and again in one process.
func TestReopen(t *testing.T) {
	for range 40 {
		openTest(t, Options{}).Close()
	}
}
