// Package vkrt runs compute on Vulkan devices: device choice, memory, pipelines, command recording,
// submission and timing. It must not know tensors, graphs or the kernel IR: a kernel is SPIR-V words, its
// arguments are a table of 64-bit entries whose address is the push constant.
//
// Start reading at device.go (Open), then stream.go (how work reaches the device and how its end is
// seen), memory.go and arena.go (device memory), pipeline.go.
//
// # Order
//
// Work of one Stream behaves as if it ran one operation after another. Two streams of a device are
// ordered by their submissions: what one stream has submitted is seen by all that another submits
// later. A Buffer belongs to one stream at a time.
//
// # Goroutines
//
// A Device's methods may be called from anywhere. A Stream is owned by one goroutine: its methods are
// called there, and callbacks run there, inside Poll, Wait and, where a result is already there, inside Read
// and After. Buffer.Release may be called from anywhere.
package vkrt

import (
	"errors"

	"nxvk/vkrt/vk"
)

// What errors of this package wrap, beside *vk.Error.
var (
	// ErrDeviceLost: the device has crashed or was reset. All work in flight failed, and so will all to come.
	ErrDeviceLost = errors.New("vulkan: the device is lost")
	// ErrOutOfMemory: the device has not that much memory to give now.
	ErrOutOfMemory = errors.New("vulkan: out of memory")
	// ErrClosed: the device or stream was closed.
	ErrClosed = errors.New("vkrt: the device is closed")
)

// Options say which device to open, and how. The zero value is the best device with its cache.
type Options struct {
	Device     string                  // index or part of the name, "" for the best: discrete, integrated, virtual, cpu
	CacheDir   string                  // folder of the pipeline cache; "" is nxvk under the user's cache folder, "-" none
	Validation bool                    // turn the validation layer on; its messages go to Log
	Log        func(level, msg string) // level: debug, info, warning or error; called from any goroutine
	Ring       int                     // submissions in flight for each stream; 0 is 8
	Limit      uint64                  // bytes of device memory to hold at most; 0 is the heap, 3/4 of it on a cpu
	Pipelines  int                     // pipelines kept ready; 0 is 2048
	// Threads of lavapipe beside its queue's own: 0 is as it does by itself, one a core; -1 none. It wakes them for each dispatch,
	// which costs 20 to 35 µs where none cost 1.5, so on few cores small kernels fare better without, and large ones lose
	// the cores. The driver reads this once for the process; LP_NUM_THREADS, if set, stands.
	Threads int

	staging bool // as if no memory were both device-local and host-visible, for tests
}

// resultError is a failed command that also is one of this package's errors.
type resultError struct {
	of   *vk.Error
	kind error
}

func (e resultError) Error() string   { return e.of.Error() }
func (e resultError) Unwrap() []error { return []error{e.of, e.kind} }

// check is vk.Check with this package's errors behind it.
func check(call string, r vk.Result) error {
	if r >= 0 {
		return nil
	}
	e := &vk.Error{Call: call, Result: r}
	switch r {
	case vk.ErrorDeviceLost:
		return resultError{e, ErrDeviceLost}
	case vk.ErrorOutOfDeviceMemory, vk.ErrorOutOfHostMemory:
		return resultError{e, ErrOutOfMemory}
	}
	return e
}
