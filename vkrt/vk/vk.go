// Package vk binds the part of Vulkan that compute needs, over purego: no C compiler and no headers at
// build time. The structs, enums and commands (z*.go) are generated from the registry by gen/; this
// file and load.go hold what is written by hand. It must not know devices' policies: package vkrt decides
// what to call and when.
//
// # Memory
//
// The driver reads the structs in place, so they must not move or die during a call. Each pointer
// parameter is converted in the call of purego.SyscallN itself, whose arguments escape: the compiler
// therefore puts the struct, and all that its pointer fields reach, on the heap, which Go's collector
// does not move, and keeps it alive until the call returns. What cannot be checked: a driver must not keep a
// pointer after the call. Vulkan's commands do not, apart from a debug messenger's user data, which a
// table keeps alive.
package vk

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

//go:generate go run ./gen

// Args is room for the arguments of one call. Its methods are the commands on hot paths: they do not allocate, where
// purego.SyscallN's own argument list would. An Args lies on the heap, within what owns the calls, and serves one
// goroutine at a time. Pointers given to its methods must be to heap memory too (fields of that same owner, say), since
// here nothing makes the compiler put it there.
type Args [12]uintptr

// proc is a command of a table and where its address goes.
type proc struct {
	name string
	addr *uintptr
}

// Loader is an open Vulkan loader (or a driver that exports vkGetInstanceProcAddr itself).
type Loader struct {
	GlobalProcs
	Path     string // the library that was opened
	instance uintptr
}

// loadTable fills the addresses of ps and returns the names that were not found.
func loadTable(ps []proc, get func(name *byte) uintptr) []string {
	var missing []string
	for _, p := range ps {
		if *p.addr = get(CString(p.name)); *p.addr == 0 {
			missing = append(missing, p.name)
		}
	}
	return missing
}

func (l *Loader) instanceProc(i Instance, name *byte) uintptr {
	r, _, _ := purego.SyscallN(l.instance, uintptr(i), uintptr(unsafe.Pointer(name)))
	return r
}

// LoadInstance loads the commands of an instance. Those of extensions that are off stay 0.
func (l *Loader) LoadInstance(i Instance) (*InstanceProcs, error) {
	p := new(InstanceProcs)
	missing := loadTable(p.table(), func(n *byte) uintptr { return l.instanceProc(i, n) })
	for _, m := range missing {
		if !strings.HasSuffix(m, "EXT") && !strings.HasSuffix(m, "KHR") {
			return nil, fmt.Errorf("vulkan: %s lacks %s", l.Path, m)
		}
	}
	return p, nil
}

// LoadDevice loads the commands of a device, past the loader's own dispatch.
func (p *InstanceProcs) LoadDevice(d Device) (*DeviceProcs, error) {
	t := new(DeviceProcs)
	if missing := loadTable(t.table(), func(n *byte) uintptr { return p.GetDeviceProcAddr(d, n) }); missing != nil {
		return nil, fmt.Errorf("vulkan: the driver lacks %s", strings.Join(missing, ", "))
	}
	return t, nil
}

// HasDebugUtils reports whether VK_EXT_debug_utils was loaded.
func (p *InstanceProcs) HasDebugUtils() bool { return p.createDebugUtilsMessengerEXT != 0 }

func (r Result) String() string {
	if s, ok := resultNames[r]; ok {
		return s
	}
	return fmt.Sprintf("VkResult(%d)", int32(r))
}

// Error is a command that returned an error code.
type Error struct {
	Call   string // vkQueueSubmit
	Result Result
}

func (e *Error) Error() string { return "vulkan: " + e.Call + ": " + e.Result.String() }

// Is reports whether target is the same result of any call, so that errors.Is(err, &Error{Result: r}) works.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Result == e.Result && (t.Call == "" || t.Call == e.Call)
}

// Check is nil for success codes (0 and above), else an *Error that names the call.
func Check(call string, r Result) error {
	if r >= 0 {
		return nil
	}
	return &Error{call, r}
}

// CString yields s with a terminating zero.
func CString(s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0]
}

// CStrings yields a C array of C strings, nil for none.
func CStrings(ss []string) **byte {
	if len(ss) == 0 {
		return nil
	}
	ps := make([]*byte, len(ss))
	for i, s := range ss {
		ps[i] = CString(s)
	}
	return &ps[0]
}

// GoString reads a fixed array that holds a C string.
func GoString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// GoStringPtr reads a C string of at most limit bytes.
func GoStringPtr(p *byte, limit int) string {
	if p == nil {
		return ""
	}
	b := unsafe.Slice(p, limit)
	for i := range limit {
		if b[i] == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// WholeSize is VK_WHOLE_SIZE: to the end of the memory or buffer.
const WholeSize = ^uint64(0)

// Version makes an API version.
func Version(major, minor, patch uint32) uint32 { return major<<22 | minor<<12 | patch }

// VersionString prints an API version.
func VersionString(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}
