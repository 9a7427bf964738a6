package vkrt

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// DisableVar names the environment variable that takes features away from every device: a list of names, separated by
// commas. A device then is as one that never had them: they are neither reported nor turned on, so that kernels which
// use them all the same are refused by the validation layer. It is how a machine with a complete device tries what
// runs on lesser ones.
const DisableVar = "NXVK_DISABLE"

// Kernels is the name of what takes every operation away from the device: the processor runs them all.
const Kernels = "kernels"

// disablers take a feature away from what a device reports.
var disablers = map[string]func(d *physical){
	"f64": func(d *physical) { d.core.ShaderFloat64 = 0 },
	"int64": func(d *physical) {
		d.core.ShaderInt64 = 0
		d.f12.ShaderBufferInt64Atomics, d.f12.ShaderSharedInt64Atomics = 0, 0
	},
	"int16": func(d *physical) {
		d.core.ShaderInt16 = 0
		d.f11.StorageBuffer16BitAccess, d.f11.UniformAndStorageBuffer16BitAccess = 0, 0
		d.f11.StoragePushConstant16, d.f11.StorageInputOutput16 = 0, 0
	},
	"int8": func(d *physical) {
		d.f12.ShaderInt8, d.f12.StorageBuffer8BitAccess, d.f12.UniformAndStorageBuffer8BitAccess, d.f12.StoragePushConstant8 = 0, 0, 0, 0
	},
	"f16":   func(d *physical) { d.f12.ShaderFloat16 = 0 },
	Kernels: func(*physical) {}, // for who decides what runs on the device
}

// disabled reads DisableVar: names in order, each once.
func disabled() ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(os.Getenv(DisableVar), ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if disablers[name] == nil {
			return nil, fmt.Errorf("vkrt: %s names %q, it knows f64, int64, int16, int8, f16 and kernels", DisableVar, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
